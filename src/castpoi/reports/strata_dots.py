"""Figure: where our method is good and where not, beside the strongest other one."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from castpoi.evaluation.strata import Stratum
from castpoi.methods.outline import Row
from castpoi.reports.evidence import CityEvidence, Evidence
from castpoi.reports.line_order import first_ours_then_strongest
from castpoi.reports.picture import SOFT, Picture, legend_below, line_styles, look, new_figure, only
from castpoi.reports.strata_table import AXES, METRIC, name_of

_SHOWN = 3
"""Rows in the figure; the table has them all."""
_APART = 0.2
"""Between the dots of two rows, in lines of the figure."""


def strata_dots(evidence: Evidence, city: CityEvidence, found: Sequence[Stratum]) -> Picture | None:
    """A dot a stratum and row; None where no stratum holds a target."""
    strata = [stratum for stratum in found if stratum.n]
    if not strata:
        return None
    rows = first_ours_then_strongest(evidence, city, METRIC)[:_SHOWN]
    positions = _positions(strata)
    with look():
        figure, (axes,) = new_figure(0.7 + 0.148 * (max(positions) + 1))
        for at, (row, style) in enumerate(zip(rows, line_styles(len(rows)), strict=True)):
            beside = _APART * (at - (len(rows) - 1) / 2)  # so that no dot hides another
            _draw_row(axes, row, style, strata, [position + beside for position in positions])
        labels = [f"{name_of(stratum)}  ({stratum.n:,})" for stratum in strata]
        axes.set_yticks([-position for position in positions], labels)
        for tick, stratum in zip(axes.get_yticklabels(), strata, strict=True):
            tick.set_color(SOFT if stratum.is_too_small else tick.get_color())
        _headings(axes, strata, positions)
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(-max(positions) - 0.7, 0.7)
        axes.set_xlim(-3, 103)
        axes.set_xlabel(f"{METRIC}, %")
        only("x", [axes])
        axes.grid(visible=True, axis="y", linewidth=0.3)
        legend_below(figure, axes, columns=3)
    return Picture(
        name=f"strata-{city.slug}",
        finding=_finding(rows[0].label, rows[0].name, found),
        caption=f"{METRIC} by kind of target, mean over seeds; the number of targets in brackets. "
        "Popularity: check-ins of the place in train. Faint: fewer than 100 targets, too few to "
        "tell.",
        figure=figure,
    )


def _draw_row(
    axes: Axes,
    row: Row,
    style: dict[str, Any],
    strata: Sequence[Stratum],
    positions: Sequence[float],
) -> None:
    """The dots of a row; those of small strata are faint."""
    for is_small in (False, True):
        dots = [
            (100 * mean, -position)
            for stratum, position in zip(strata, positions, strict=True)
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


def _positions(strata: Sequence[Stratum]) -> list[float]:
    """From the top: a line for the heading of every axis, then its strata."""
    positions, at, axis = [], 0.0, ""
    for stratum in strata:
        at += 1.0 + (stratum.axis != axis)
        axis = stratum.axis
        positions.append(at - 1)
    return positions


def _headings(axes: Axes, strata: Sequence[Stratum], positions: Sequence[float]) -> None:
    for name, words in AXES.items():
        own = [at for stratum, at in zip(strata, positions, strict=True) if stratum.axis == name]
        if own:
            axes.text(
                -0.02,
                -(own[0] - 1),
                words,
                transform=axes.get_yaxis_transform(),
                ha="right",
                va="center",
                fontweight="bold",
                fontsize=6.5,
            )


def _finding(label: str, name: str, strata: Sequence[Stratum]) -> str:
    values = {stratum.name: stratum.metrics[name][METRIC].mean for stratum in strata}
    revisit, new = values.get("revisit"), values.get("new")
    if revisit is None or new is None:
        return f"{label}, kind by kind of target"
    return (
        f"{label} has {100 * revisit:.0f} % of revisits and {100 * new:.0f} % of new places in its "
        "first ten"
    )
