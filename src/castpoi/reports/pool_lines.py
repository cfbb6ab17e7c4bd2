"""Figure: HR@10 against the size of the pool the target is ranked in."""

from collections.abc import Sequence
from typing import Final

from matplotlib.axes import Axes
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from castpoi.evaluation.pool import PoolCurve
from castpoi.methods.outline import OURS, Row
from castpoi.reports.evidence import CityEvidence, Evidence
from castpoi.reports.line_order import first_ours_then_strongest
from castpoi.reports.picture import (
    FAINT,
    SOFT,
    Picture,
    legend_below,
    line_styles,
    look,
    new_figure,
)
from castpoi.reports.pool_table import METRIC

_COLOURED: Final = 3
"""Rivals with a colour; more lines than that and ours cannot be told apart."""
_NAME_HEIGHT: Final = 0.04
"""Of the height of the axes."""


def pool_lines(evidence: Evidence, city: CityEvidence, curve: PoolCurve) -> Picture | None:
    """One line a row on a logarithmic axis of pool sizes; None where there is one pool only."""
    if len(curve.pools) < 2:
        return None
    rows = first_ours_then_strongest(evidence, city, METRIC)
    ours = [row for row in rows if row.role == OURS]
    others = [row for row in rows if row.role != OURS]
    coloured, faint = [*ours, *others[:_COLOURED]], others[_COLOURED:]
    with look():
        figure, (axes,) = new_figure(2.6 + 0.12 * ((len(coloured) + 2) // 3))
        for row, style in zip(coloured, line_styles(len(coloured)), strict=True):
            axes.plot(curve.pools, _percents(curve, row), label=row.label, **style)
        for row in faint:
            axes.plot(curve.pools, _percents(curve, row), color=FAINT, linewidth=0.7, zorder=2)
        _scale(axes, curve.pools)
        named = _name_faint(axes, curve, faint)
        legend_below(figure, axes, columns=3)
    unnamed = ", ".join(row.label for row in faint if row not in named)
    return Picture(
        name=f"pool-{city.slug}",
        finding=_finding(curve),
        caption=f"Expected {METRIC} when the target stands among places drawn at random; "
        "the last point is the whole vocabulary."
        + (f" Grey lines without a name: {unnamed}." if unnamed else ""),
        figure=figure,
    )


def _percents(curve: PoolCurve, row: Row) -> list[float]:
    return [100 * value for value in curve.values[row.name]]


def _scale(axes: Axes, pools: list[int]) -> None:
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(pools))
    axes.xaxis.set_major_formatter(FixedFormatter(_tick_words(pools)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("places in the pool")
    axes.set_ylabel(f"{METRIC}, %")


def _name_faint(axes: Axes, curve: PoolCurve, rows: Sequence[Row]) -> list[Row]:
    """Write names beside the ends of grey lines, as far as they do not cross; who has one."""
    low, high = axes.get_ylim()
    gap = (high - low) * _NAME_HEIGHT
    taken: list[float] = []
    named = []
    for row in rows:
        end = _percents(curve, row)[-1]
        if any(abs(end - other) < gap for other in taken):
            continue
        taken.append(end)
        named.append(row)
        axes.annotate(
            row.label,
            (curve.pools[-1], end),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
            color=SOFT,
            fontsize=5.5,
        )
    return named


def _finding(curve: PoolCurve) -> str:
    pool, methods = f"{curve.pools[0]:,}", len(curve.values)
    if methods == 1:
        (values,) = curve.values.values()
        small, whole = (f"{100 * values[at]:.0f} %" for at in (0, -1))
        return f"{METRIC} would be {small} in a pool of {pool}, and is {whole}"
    flips, pairs = len(curve.flips), methods * (methods - 1) // 2
    if not flips:
        return f"A pool of {pool} keeps the order of all methods"
    return f"A pool of {pool} puts {flips} of {pairs} pairs of methods in the wrong order"


def _tick_words(pools: list[int]) -> list[str]:
    """Sizes in few letters; one too near to the last is not written."""
    words = [f"{pool // 1000}k" if pool % 1000 == 0 else str(pool) for pool in pools[:-1]]
    if len(pools) > 1 and pools[-1] < 1.5 * pools[-2]:
        words[-1] = ""
    return [*words, f"all\n{pools[-1]:,}"]
