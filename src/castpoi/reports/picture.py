"""Figures of a report: one look, one column wide, as SVG and PNG.

Drawn with matplotlib (the extra `report`): error bars, logarithmic axes and PNG from one piece of
code. Colours are those of Okabe and Ito, which people with any colour vision tell apart, and grey;
marks and dashes differ too, so that a figure can be read without colours.
"""

import hashlib
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any, Final

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLUMN_INCHES: Final = 3.5
"""Width of a column of a paper."""
_PNG_DPI: Final = 300
_NAME_LETTERS: Final = 48  # of a line in the legend, which is no wider than the figure

INK: Final = "#1b1e23"
SOFT: Final = "#5d646e"
LINE: Final = "#e4e1da"
OURS: Final = "#0072b2"
RIVAL: Final = "#d55e00"
FAINT: Final = "#999999"
OTHERS: Final = ("#009e73", "#cc79a7", "#e69f00", "#56b4e9", INK, FAINT)
_DASHES: Final = ((0, (4, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)), (0, (2, 1)))
_MARKS: Final = ("s", "^", "D", "v", "P", "X", "<", ">")

_ON_PAGE: Final = {INK: "--ink", SOFT: "--soft", LINE: "--line", OURS: "--blue"}
"""Colours that follow the light or dark look of the page."""
_LOOK: Final[Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib: the same widths everywhere
    "font.size": 7,
    "axes.titlesize": 7.5,
    "axes.labelsize": 7,
    "axes.edgecolor": SOFT,
    "axes.facecolor": "none",
    "axes.labelcolor": INK,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": LINE,
    "grid.linewidth": 0.6,
    "text.color": INK,
    "text.parse_math": False,  # a dollar in a name is a dollar
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.labelsize": 6.5,
    "ytick.labelsize": 6.5,
    "legend.fontsize": 6.5,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.2,
}


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A drawn figure with its words."""

    name: str
    """Name of its files."""
    finding: str
    """What it shows, as a headline."""
    caption: str
    """How it was counted, and what the marks mean."""
    figure: Figure

    def __post_init__(self) -> None:
        with rc_context(_LOOK):  # the layout is worked out once, not for every file
            self.figure.draw_without_rendering()
            self.figure.set_layout_engine("none")

    def svg(self) -> str:
        """A file of its own: white ground, letters as outlines."""
        return self._written("path", facecolor="white")

    def png(self) -> bytes:
        """Pixels, 300 to the inch."""
        target = io.BytesIO()
        with rc_context(_LOOK):
            self.figure.savefig(
                target, format="png", dpi=_PNG_DPI, facecolor="white", metadata={"Software": None}
            )
        return target.getvalue()

    def inline(self) -> str:
        """Markup for a page: clear ground, the page's letters and colours, ids of its own."""
        markup = self._written("none", facecolor="none")
        markup = markup[markup.index("<svg") :]
        prefix = hashlib.sha256(self.name.encode()).hexdigest()[:8]
        markup = re.sub(r"<metadata>.*?</metadata>", "", markup, flags=re.DOTALL)
        markup = re.sub(r'\bid="', f'id="{prefix}-', markup)
        markup = re.sub(r'(url\(#|href="#)', rf"\g<1>{prefix}-", markup)
        markup = re.sub(r"font: ?([\d.]+px) [^;\"]*", r"font-size: \1", markup)
        for colour, variable in _ON_PAGE.items():
            markup = markup.replace(colour, f"var({variable})")
        return re.sub(r'<svg ([^>]*?)width="[^"]*" height="[^"]*"', r"<svg \1", markup, count=1)

    def _written(self, letters: str, *, facecolor: str) -> str:
        target = io.StringIO()
        with rc_context({**_LOOK, "svg.fonttype": letters, "svg.hashsalt": self.name}):
            self.figure.savefig(target, format="svg", facecolor=facecolor, metadata={"Date": None})
        return target.getvalue()


def new_figure(
    height_inches: float, *, panels: int = 1, share_y: bool = False
) -> tuple[Figure, list[Axes]]:
    """A figure one column wide with panels side by side."""
    with rc_context(_LOOK):
        figure = Figure(figsize=(COLUMN_INCHES, height_inches), layout="constrained")
        axes = figure.subplots(1, panels, sharey=share_y, squeeze=False)[0]
        return figure, list(axes)


def look() -> Any:
    """The look of figures, while a block draws."""
    return rc_context(_LOOK)


def line_styles(count: int) -> list[dict[str, Any]]:
    """How to draw some lines: ours first, then the strongest other, then the rest."""
    styles: list[dict[str, Any]] = [
        {"color": OURS, "linestyle": "-", "marker": "o", "linewidth": 1.8, "zorder": 5},
        {"color": RIVAL, "linestyle": _DASHES[0], "marker": _MARKS[0], "zorder": 4},
    ]
    for number in range(max(0, count - 2)):
        styles.append(
            {
                "color": OTHERS[number % len(OTHERS)],
                "linestyle": _DASHES[(number + 1) % len(_DASHES)],
                "marker": _MARKS[(number + 1) % len(_MARKS)],
                "linewidth": 0.9,
                "zorder": 3,
            }
        )
    return styles[:count]


def legend_below(figure: Figure, axes: Axes, columns: int = 2) -> None:
    """Name the lines under the plot, where no line can hide the names."""
    handles, labels = axes.get_legend_handles_labels()
    names = [fill(label, _NAME_LETTERS) for label in labels]
    for number in range(columns, 0, -1):  # fewer where the names would not fit side by side
        legend = figure.legend(
            handles, names, loc="outside lower center", ncols=number, handlelength=2.6
        )
        if number == 1 or legend.get_window_extent().width < figure.bbox.width:
            return
        legend.remove()


def only(axis: str, axes: Sequence[Axes]) -> None:
    """Keep the grid lines of one axis."""
    for one in axes:
        one.grid(visible=False, axis="y" if axis == "x" else "x")
