"""Figure: what every part of the model is worth, as bars of what is lost without it."""

import math
from statistics import stdev
from textwrap import fill
from typing import Final

from matplotlib.axes import Axes

from castpoi.methods.outline import OURS as OUR_ROLE
from castpoi.methods.outline import Row, TableOutline
from castpoi.reports.evidence import CityEvidence, change_between, mean_of
from castpoi.reports.outline import without_name
from castpoi.reports.picture import INK, LINE, OURS, RIVAL, SOFT, Picture, look, new_figure, only

_METRICS: Final = ("HR@10", "MRR")
_LINE_LETTERS: Final = 26  # of a label; longer ones would leave no room for the bars


def ablation_bars(outline: TableOutline, city: CityEvidence) -> Picture | None:
    """Change from the full model in points, with its deviation; None without variants."""
    full = next((row for row in outline.rows if row.role == OUR_ROLE), None)
    variants = [row for row in outline.rows if row.role != OUR_ROLE]
    variants = [row for row in variants if row.name in city.contenders]
    if full is None or full.name not in city.contenders or not variants:
        return None
    labels = [without_name(row.label, full.label) for row in variants]
    wrapped = [fill(label, _LINE_LETTERS) for label in labels]
    lines = sum(label.count("\n") + 1 for label in wrapped)
    with look():
        figure, panels = new_figure(0.75 + 0.26 * lines, panels=2, share_y=True)
        for axes, metric in zip(panels, _METRICS, strict=True):
            _draw(axes, city, full, variants, metric)
            axes.tick_params(axis="y", length=0)
        panels[0].set_yticks(_heights(variants), wrapped)
        only("x", panels)
    changes = {
        label: 100 * change_between(city, full.name, row.name, _METRICS[0])
        for label, row in zip(labels, variants, strict=True)
    }
    return Picture(
        name=f"{outline.name}-{city.slug}",
        finding=_finding(changes, noise=_deviation(city, full.name, _METRICS[0]) or 0.0),
        caption=(
            "Change from the full model over equally many seeds, in points of percent; orange bars "
            "are gains. Whiskers: sample deviation of the variant over seeds; grey band: that of "
            "the full model."
        ),
        figure=figure,
    )


def _draw(axes: Axes, city: CityEvidence, full: Row, variants: list[Row], metric: str) -> None:
    """One bar a variant: how far it is from the full model, in points."""
    base = mean_of(city.contenders[full.name], metric)
    changes = [100 * change_between(city, full.name, row.name, metric) for row in variants]
    spreads = [_deviation(city, row.name, metric) for row in variants]
    band = _deviation(city, full.name, metric)
    if band is not None:
        axes.axvspan(-band, band, color=LINE, linewidth=0)
    axes.barh(
        _heights(variants),
        changes,
        height=0.62,
        color=[OURS if change < 0 else RIVAL for change in changes],
        xerr=[math.nan if each is None else each for each in spreads],
        error_kw={"ecolor": INK, "elinewidth": 0.8, "capsize": 1.8},
    )
    axes.axvline(0, color=SOFT, linewidth=0.8)
    axes.set_title(f"{metric} ({100 * base:.1f} full)")
    axes.set_xlabel("change, points")
    axes.margins(x=0.08)
    axes.set_ylim(-0.5, len(variants) - 0.5)  # a lonely bar is no thicker than one of many


def _heights(variants: list[Row]) -> list[float]:
    """Where each bar stands: the first on top."""
    return [float(number) for number in range(len(variants))][::-1]


def _finding(changes: dict[str, float], *, noise: float) -> str:
    """The largest loss, where it is larger than the deviation of the full model over seeds."""
    worst, change = min(changes.items(), key=lambda item: item[1])
    if change >= 0:
        return "HR@10 loses by none of them"
    if -change <= noise:
        return "HR@10 loses by none of them more than seeds of the full model differ"
    most = " most" if len(changes) > 1 else ""
    how = worst.replace("w/o", "without") if worst.startswith("w/o ") else f"with {worst}"
    return f"HR@10 loses{most} {how}: {-change:.1f} points"


def _deviation(city: CityEvidence, row: str, metric: str) -> float | None:
    values = [100 * (result.metrics[metric] or 0.0) for result in city.contenders[row].results]
    return stdev(values) if len(values) > 1 else None
