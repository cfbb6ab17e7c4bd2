"""The look of all charts: drawn with matplotlib, as SVG and PNG files and inside a page.

Colours are those of Okabe and Ito, which people with any colour vision can distinguish, and grey;
markers and dashes differ too, so that a chart can be read without colours.
"""

import hashlib
import io
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.resources import files
from textwrap import fill
from typing import Any, Final

from matplotlib import rc_context, rc_params_from_file
from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLUMN_INCHES: Final = 3.5  # width of a column of a paper
PNG_DPI: Final = 300
_LEGEND_CHARACTERS: Final = 48  # of a line in the legend, which is no wider than the chart

INK: Final = "#1b1e23"
SOFT: Final = "#5d646e"
LINE: Final = "#e4e1da"
BLUE: Final = "#0072b2"
ORANGE: Final = "#d55e00"
GREY: Final = "#999999"
SEA: Final = "#dfe9ee"
LAND: Final = "#fbfaf7"
_OTHERS: Final = ("#009e73", "#cc79a7", "#e69f00", "#56b4e9", INK, GREY)
_DASHES: Final = ((0, (4, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)), (0, (2, 1)))
_MARKERS: Final = ("s", "^", "D", "v", "P", "X", "<", ">")

_ON_PAGE: Final = {
    **{INK: "--ink", SOFT: "--soft", LINE: "--line", BLUE: "--blue", ORANGE: "--star"},
    **{SEA: "--sea", LAND: "--land"},
}
"""Colours that follow the light or dark theme of a page."""
_SHEET: Final = files("castpoi.reports").joinpath("charts.mplstyle")
_LOOK: Final[Any] = {
    **rc_params_from_file(str(_SHEET), use_default_template=False),
    **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.labelcolor", "ytick.labelcolor"), INK),
    **dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), SOFT),
    "grid.color": LINE,
}


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A drawn figure with its text."""

    name: str  # of its files
    figure: Figure
    headline: str = ""
    caption: str = ""  # how it was measured, and what the marks mean
    city: str = ""

    def __post_init__(self) -> None:
        with look():  # one layout for all files
            self.figure.draw_without_rendering()
            self.figure.set_layout_engine("none")

    def svg(self) -> str:
        """A file with a white background and text as outlines."""
        return self._written("path", facecolor="white")

    def png(self) -> bytes:
        """An image of 300 dots per inch."""
        target = io.BytesIO()
        with look():
            self.figure.savefig(
                target, format="png", dpi=PNG_DPI, facecolor="white", metadata={"Software": None}
            )
        return target.getvalue()

    def inline(self) -> str:
        """Markup for a page, with the page's fonts and colours, and ids of its own."""
        markup = self._written("none", facecolor="none")
        markup = markup[markup.index("<svg") :]
        prefix = hashlib.sha256(self.name.encode()).hexdigest()[:8]
        markup = re.sub(r"<metadata>.*?</metadata>", "", markup, flags=re.DOTALL)
        markup = re.sub(r' xmlns(:xlink)?="[^"]*"', "", markup)
        markup = re.sub(r'\bid="', f'id="{prefix}-', markup)
        markup = re.sub(r'(url\(#|href="#)', rf"\g<1>{prefix}-", markup).replace("xlink:", "")
        markup = re.sub(r"font: ?([\d.]+px) [^;\"]*", r"font-size: \1", markup)
        for colour, variable in _ON_PAGE.items():
            markup = markup.replace(colour, f"var({variable})")
        return re.sub(r'<svg ([^>]*?)width="[^"]*" height="[^"]*"', r"<svg \1", markup, count=1)

    def _written(self, text: str, *, facecolor: str) -> str:
        target = io.StringIO()
        with rc_context({**_LOOK, "svg.fonttype": text, "svg.hashsalt": self.name}):
            self.figure.savefig(target, format="svg", facecolor=facecolor, metadata={"Date": None})
        return target.getvalue()


def look() -> AbstractContextManager[None]:
    """The settings of matplotlib while a chart is drawn."""
    return rc_context(_LOOK)


def new_figure(
    height_inches: float, *, panels: int = 1, share_y: bool = False
) -> tuple[Figure, list[Axes]]:
    """A figure one column wide with panels side by side."""
    with look():
        figure = Figure(figsize=(COLUMN_INCHES, height_inches), layout="constrained")
        return figure, list(figure.subplots(1, panels, sharey=share_y, squeeze=False)[0])


def line_styles(count: int) -> list[dict[str, Any]]:
    """Styles of lines: the first two stand out."""
    styles: list[dict[str, Any]] = [
        {"color": BLUE, "linestyle": "-", "marker": "o", "linewidth": 1.8, "zorder": 5},
        {"color": ORANGE, "linestyle": _DASHES[0], "marker": _MARKERS[0], "zorder": 4},
    ]
    for number in range(max(0, count - 2)):
        colour = _OTHERS[number % len(_OTHERS)]
        dash = _DASHES[(number + 1) % len(_DASHES)]
        marker = _MARKERS[(number + 1) % len(_MARKERS)]
        thin = {"linewidth": 0.9, "zorder": 3}
        styles.append({"color": colour, "linestyle": dash, "marker": marker, **thin})
    return styles[:count]


def legend_below(figure: Figure, axes: Axes, columns: int = 2) -> None:
    """Add a legend below the plot, with fewer columns where the names are long."""
    handles, labels = axes.get_legend_handles_labels()
    names = [fill(label, _LEGEND_CHARACTERS) for label in labels]
    for number in range(columns, 0, -1):
        legend = figure.legend(
            handles, names, loc="outside lower center", ncols=number, handlelength=2.6
        )
        if number == 1 or legend.get_window_extent().width < figure.bbox.width:
            return
        legend.remove()


def grid_along(axis: str, axes: Sequence[Axes]) -> None:
    """Keep the grid lines of one axis only."""
    for one in axes:
        one.grid(visible=False, axis="y" if axis == "x" else "x")


def from_top(rows: Sequence[object]) -> list[float]:
    """Positions of rows on a vertical axis, the first at the top."""
    return [float(number) for number in range(len(rows))][::-1]
