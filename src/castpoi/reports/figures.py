"""Figures of results on a city: ablation, pool size and strata.

A figure that the results do not allow is left out. The headline of a figure is its main finding.
"""

import math
from collections.abc import Mapping, Sequence
from statistics import stdev
from textwrap import fill
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from castpoi.evaluation.pool import PoolCurve
from castpoi.evaluation.strata import Stratum
from castpoi.methods.outline import OURS, Row, TableOutline
from castpoi.reports.analyses import AXES, METRIC, stratum_name
from castpoi.reports.evidence import CityEvidence, Evidence
from castpoi.reports.significance import without_name
from castpoi.reports.style import (
    BLUE,
    GREY,
    INK,
    LINE,
    ORANGE,
    SOFT,
    Chart,
    grid_along,
    legend_below,
    line_styles,
    look,
    new_figure,
)

_LABEL_CHARACTERS: Final = 26  # of a line; longer labels would leave no space for the bars
_COLOURED: Final = 3  # baselines with a colour; with more of them ours cannot be made out
_STRATA_ROWS: Final = 3


def ablation_bars(outline: TableOutline, city: CityEvidence) -> Chart | None:
    """Change of each variant from the full model in percentage points."""
    full = next((row for row in outline.rows if row.role == OURS), None)
    variants = [row for row in outline.rows if row.role != OURS and city.has(row)]
    if full is None or not city.has(full) or not variants:
        return None
    labels = [without_name(row.label, full.label) for row in variants]
    wrapped = [fill(label, _LABEL_CHARACTERS) for label in labels]
    lines = sum(label.count("\n") + 1 for label in wrapped)
    with look():
        figure, panels = new_figure(0.75 + 0.26 * lines, panels=2, share_y=True)
        for axes, metric in zip(panels, (METRIC, "MRR"), strict=True):
            _ablation_panel(axes, city, (full, variants), metric)
        panels[0].set_yticks(_from_top(variants), wrapped)
        grid_along("x", panels)
    changes = {
        label: 100 * city.change(full.name, row.name, METRIC)
        for label, row in zip(labels, variants, strict=True)
    }
    return Chart(
        name=f"{outline.name}-{city.slug}",
        city=city.name,
        headline=_largest_loss(changes, _deviation(city, full.name, METRIC) or 0.0),
        caption="Change from the full model over equally many seeds, in percentage points; gains "
        "are orange. Whiskers: sample standard deviation of the variant over seeds; grey band: "
        "that of the full model.",
        figure=figure,
    )


def _ablation_panel(
    axes: Axes, city: CityEvidence, rows: tuple[Row, list[Row]], metric: str
) -> None:
    full, variants = rows
    changes = [100 * city.change(full.name, row.name, metric) for row in variants]
    spreads = [_deviation(city, row.name, metric) for row in variants]
    band = _deviation(city, full.name, metric)
    if band is not None:
        axes.axvspan(-band, band, color=LINE, linewidth=0)
    axes.barh(
        _from_top(variants),
        changes,
        height=0.62,
        color=[BLUE if change < 0 else ORANGE for change in changes],
        xerr=[math.nan if each is None else each for each in spreads],
        error_kw={"ecolor": INK, "elinewidth": 0.8, "capsize": 1.8},
    )
    axes.axvline(0, color=SOFT, linewidth=0.8)
    axes.set_title(f"{metric} ({100 * city.mean(full.name, metric):.1f} full)")
    axes.set_xlabel("change, points")
    axes.margins(x=0.08)
    axes.set_ylim(-0.5, len(variants) - 0.5)  # equally thick bars for any number of variants
    axes.tick_params(axis="y", length=0)


def _from_top(rows: Sequence[object]) -> list[float]:
    return [float(number) for number in range(len(rows))][::-1]


def _largest_loss(changes: Mapping[str, float], deviation: float) -> str:
    """The largest loss, if it exceeds the deviation of the full model over seeds."""
    label, change = min(changes.items(), key=lambda item: item[1])
    if change >= 0:
        return f"No variant has a lower {METRIC}"
    if -change <= deviation:
        return f"No loss of {METRIC} exceeds the deviation of the full model over seeds"
    most = " most" if len(changes) > 1 else ""
    how = label.replace("w/o", "without") if label.startswith("w/o ") else f"with {label}"
    return f"{METRIC} drops{most} {how}: by {-change:.1f} points"


def _deviation(city: CityEvidence, row: str, metric: str) -> float | None:
    values = [100 * (result.metrics[metric] or 0.0) for result in city.contenders[row].results]
    return stdev(values) if len(values) > 1 else None


def pool_lines(evidence: Evidence, city: CityEvidence, curve: PoolCurve) -> Chart | None:
    """HR@10 by the size of the pool that the target is ranked in."""
    if len(curve.pools) < 2:
        return None
    rows = evidence.in_order(city, METRIC)
    ours = [row for row in rows if row.role == OURS]
    others = [row for row in rows if row.role != OURS]
    coloured, grey = [*ours, *others[:_COLOURED]], others[_COLOURED:]
    values = {name: [100 * value for value in own] for name, own in curve.values.items()}
    with look():
        figure, (axes,) = new_figure(2.6 + 0.12 * ((len(coloured) + 2) // 3))
        for row, style in zip(coloured, line_styles(len(coloured)), strict=True):
            axes.plot(curve.pools, values[row.name], label=row.label, **style)
        for row in grey:
            axes.plot(curve.pools, values[row.name], color=GREY, linewidth=0.7, zorder=2)
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(FixedLocator(curve.pools))
        axes.xaxis.set_major_formatter(FixedFormatter(_pool_names(curve.pools)))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xlabel("places in the pool")
        axes.set_ylabel(f"{METRIC}, %")
        unnamed = _name_ends(axes, {row.label: values[row.name][-1] for row in grey}, curve)
        legend_below(figure, axes, columns=3)
    return Chart(
        name=f"pool-{city.slug}",
        city=city.name,
        headline=_pool_headline(curve),
        caption=f"Expected {METRIC} if the target were ranked among places drawn at random; the "
        "last point is the whole vocabulary."
        + (f" Grey lines without a name: {', '.join(unnamed)}." if unnamed else ""),
        figure=figure,
    )


def _name_ends(axes: Axes, ends: Mapping[str, float], curve: PoolCurve) -> list[str]:
    """Label the ends of lines where there is space; the labels without space."""
    low, high = axes.get_ylim()
    taken: list[float] = []
    unnamed = []
    for label, end in ends.items():
        if any(abs(end - other) < 0.04 * (high - low) for other in taken):
            unnamed.append(label)
            continue
        taken.append(end)
        axes.annotate(
            label,
            (curve.pools[-1], end),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
            color=SOFT,
            fontsize=5.5,
        )
    return unnamed


def _pool_headline(curve: PoolCurve) -> str:
    pool, methods = f"{curve.pools[0]:,}", len(curve.values)
    if methods == 1:
        (values,) = curve.values.values()
        small, whole = (f"{100 * values[at]:.0f} %" for at in (0, -1))
        return f"{METRIC} is {whole}, and would be {small} in a pool of {pool}"
    pairs = methods * (methods - 1) // 2
    if not curve.flips:
        return f"A pool of {pool} keeps the order of all methods"
    return f"A pool of {pool} reverses {len(curve.flips)} of {pairs} pairs of methods"


def _pool_names(pools: Sequence[int]) -> list[str]:
    """Short names of pool sizes; one too close to the last has none."""
    names = [f"{pool // 1000}k" if pool % 1000 == 0 else str(pool) for pool in pools[:-1]]
    if len(pools) > 1 and pools[-1] < 1.5 * pools[-2]:
        names[-1] = ""
    return [*names, f"all\n{pools[-1]:,}"]


def strata_dots(evidence: Evidence, city: CityEvidence, found: Sequence[Stratum]) -> Chart | None:
    """HR@10 by stratum, of our method and the strongest others."""
    strata = [stratum for stratum in found if stratum.n]
    if not strata:
        return None
    rows = evidence.in_order(city, METRIC)[:_STRATA_ROWS]
    at = _stratum_positions(strata)
    with look():
        figure, (axes,) = new_figure(0.7 - 0.148 * (min(at) - 1))
        for number, (row, style) in enumerate(zip(rows, line_styles(len(rows)), strict=True)):
            shift = 0.2 * ((len(rows) - 1) / 2 - number)  # so that no dot covers another
            _stratum_dots(axes, (row, style), strata, [each + shift for each in at])
        labels = [f"{stratum_name(stratum)}  ({stratum.n:,})" for stratum in strata]
        axes.set_yticks(at, labels)
        for tick, stratum in zip(axes.get_yticklabels(), strata, strict=True):
            tick.set_color(SOFT if stratum.is_too_small else tick.get_color())
        _stratum_headings(axes, strata, at)
        axes.tick_params(axis="y", length=0)
        axes.set(xlim=(-3, 103), ylim=(min(at) - 0.7, 0.7), xlabel=f"{METRIC}, %")
        grid_along("x", [axes])
        axes.grid(visible=True, axis="y", linewidth=0.3)
        legend_below(figure, axes, columns=3)
    return Chart(
        name=f"strata-{city.slug}",
        city=city.name,
        headline=_stratum_headline(rows[0], found),
        caption=f"{METRIC} by kind of target, mean over seeds; the number of targets in brackets. "
        "Popularity: check-ins of the place in train. Faint: fewer than 100 targets.",
        figure=figure,
    )


def _stratum_positions(strata: Sequence[Stratum]) -> list[float]:
    """Downwards: a line for the heading of every axis, then its strata."""
    axes = [stratum.axis for stratum in strata]
    return [-float(number + len(set(axes[: number + 1]))) for number in range(len(axes))]


def _stratum_dots(
    axes: Axes, line: tuple[Row, dict[str, Any]], strata: Sequence[Stratum], at: Sequence[float]
) -> None:
    """The dots of a row; those of small strata are faint."""
    row, style = line
    for is_small in (False, True):
        dots = [
            (100 * mean, position)
            for stratum, position in zip(strata, at, strict=True)
            for mean in [stratum.metrics[row.name][METRIC].mean]
            if mean is not None and stratum.is_too_small == is_small
        ]
        axes.plot(
            [x for x, _ in dots],
            [y for _, y in dots],
            label=None if is_small else row.label,
            alpha=0.35 if is_small else 1,
            **{**style, "linestyle": "none", "linewidth": 0},
        )


def _stratum_headings(axes: Axes, strata: Sequence[Stratum], at: Sequence[float]) -> None:
    first = {stratum.axis: each for stratum, each in reversed(list(zip(strata, at, strict=True)))}
    for axis, position in first.items():
        axes.text(
            -0.02,
            position + 1,
            AXES[axis],
            transform=axes.get_yaxis_transform(),
            ha="right",
            va="center",
            fontweight="bold",
            fontsize=6.5,
        )


def _stratum_headline(row: Row, strata: Sequence[Stratum]) -> str:
    values = {stratum.name: stratum.metrics[row.name][METRIC].mean for stratum in strata}
    revisit, new = values.get("revisit"), values.get("new")
    if revisit is None or new is None:
        return f"{METRIC} of {row.label} by kind of target"
    return (
        f"{row.label} has {100 * revisit:.0f} % of revisits and {100 * new:.0f} % of new places in "
        "its top ten"
    )
