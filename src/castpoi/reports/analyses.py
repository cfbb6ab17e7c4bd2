"""Analyses of a city: metrics by stratum and by pool size, and beyond accuracy."""

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Final

from castpoi.evaluation.beyond import BeyondAccuracy
from castpoi.evaluation.pool import PoolCurve, pool_curve
from castpoi.evaluation.result import Result
from castpoi.evaluation.strata import Stratum, strata
from castpoi.methods.outline import OURS, Row
from castpoi.reports import notes
from castpoi.reports.evidence import CityEvidence, Evidence
from castpoi.reports.table import NOTHING, Cell, Group, Table, count, number, percent, text_cell

CUTOFF: Final = 10
METRIC: Final = f"HR@{CUTOFF}"
AXES: Final = {
    "history": "Visits before",
    "frequency": "Popularity of place",
    "return": "Been there before",
    "distance": "Distance from last visit",
    "gap": "Time since last visit",
}


def strata_of(evidence: Evidence, city: CityEvidence) -> list[Stratum]:
    """The strata of a city with HR@10 of its rows."""
    return strata([city.contenders[row.name] for row in evidence.rows_of(city)], [METRIC])


def strata_table(evidence: Evidence, city: CityEvidence, found: Sequence[Stratum]) -> Table:
    """One line for each stratum, one column for each row."""
    rows = evidence.rows_of(city)
    return Table(
        name=f"strata-{city.slug}",
        title=f"Strata of {city.name}",
        caption=notes.STRATA,
        columns=["Targets by", "Stratum", "n", *(row.label for row in rows)],
        groups=[Group(rows=[_stratum_line(stratum, rows) for stratum in found])],
        words=2,
    )


def stratum_name(stratum: Stratum) -> str:
    """The name of a stratum in print."""
    return stratum.name.replace(">=", "≥")


def _stratum_line(stratum: Stratum, rows: Sequence[Row]) -> list[Cell]:
    means = [stratum.metrics[row.name][METRIC].mean for row in rows]
    measured = [mean for mean in means if mean is not None]
    highest = max(measured) if len(measured) > 1 else None
    return [
        text_cell(AXES[stratum.axis]),
        text_cell(stratum_name(stratum)),
        count(stratum.n),
        *(_stratum_cell(stratum, mean, highest) for mean in means),
    ]


def _stratum_cell(stratum: Stratum, mean: float | None, highest: float | None) -> Cell:
    if mean is None:
        return NOTHING
    return Cell(
        text=f"{100 * mean:.1f}",
        value=100 * mean,
        is_best=mean == highest and not stratum.is_too_small,
        is_faint=stratum.is_too_small,
        note=f"{stratum.n:,} targets",
    )


def pool_of(evidence: Evidence, city: CityEvidence) -> PoolCurve:
    """HR@10 by pool size."""
    return pool_curve([city.contenders[row.name] for row in evidence.rows_of(city)], CUTOFF)


def pool_table(evidence: Evidence, city: CityEvidence, curve: PoolCurve) -> Table:
    """One line for each row, one column for each pool size."""
    rows = {row.name: row for row in evidence.rows_of(city)}
    highest = [max(own[at] for own in curve.values.values()) for at in range(len(curve.pools))]
    lines = [
        [
            Cell(text=rows[name].label, is_ours=rows[name].role == OURS),
            *(
                Cell(
                    text=f"{100 * value:.1f}",
                    value=100 * value,
                    is_best=value == best and len(rows) > 1,
                )
                for value, best in zip(values, highest, strict=True)
            ),
        ]
        for name, values in curve.values.items()
    ]
    return Table(
        name=f"pool-{city.slug}",
        title=f"Pool size on {city.name}",
        caption=notes.POOL,
        footnotes=_flips(curve, {name: row.label for name, row in rows.items()}),
        columns=["Method", *(f"{pool:,}" for pool in curve.pools[:-1]), "all"],
        groups=[Group(rows=lines)],
    )


def _flips(curve: PoolCurve, labels: dict[str, str]) -> list[str]:
    """The pairs of methods whose order is wrong in the smallest pool."""
    worse_than: dict[str, list[str]] = {}
    for better, worse in curve.flips:
        worse_than.setdefault(labels[better], []).append(labels[worse])
    if not worse_than:
        return []
    pairs = "; ".join(f"{better} over {', '.join(worse)}" for better, worse in worse_than.items())
    return [f"Better among all places, but not in a pool of {curve.pools[0]:,}: {pairs}."]


def beyond_table(evidence: Evidence, city: CityEvidence) -> Table:
    """Distance error, coverage, popularity and calibration."""
    return Table(
        name=f"beyond-accuracy-{city.slug}",
        title=f"Beyond accuracy on {city.name}",
        caption=notes.BEYOND,
        columns=[
            "Method",
            "Median km off",
            "Mean km off",
            "Coverage %",
            "Popularity of first",
            "Popularity of listed",
            "Popularity of visited",
            "Mean softmax %",
            "Right first %",
            "ECE %",
        ],
        groups=[Group(rows=[_beyond_line(city, row) for row in evidence.rows_of(city)])],
    )


def _beyond_line(city: CityEvidence, row: Row) -> list[Cell]:
    results = city.contenders[row.name].results
    measured = [result.beyond for result in results]
    note = "\n".join(result.name for result in results)
    return [
        Cell(text=row.label, note=note, is_ours=row.role == OURS),
        number(_mean(measured, lambda one: one.median_km_off)),
        number(_mean(measured, lambda one: one.mean_km_off)),
        percent(_mean(measured, lambda one: one.coverage), 1),
        number(_mean(measured, lambda one: one.popularity_of_first), 1),
        number(_mean(measured, lambda one: one.popularity_of_listed), 1),
        number(_mean(measured, lambda one: one.popularity_of_target), 1),
        *(_calibration_cells(results) if row.is_learned else [NOTHING] * 3),
    ]


def _calibration_cells(results: Sequence[Result]) -> list[Cell]:
    measured = [result.beyond.calibration for result in results]
    return [
        percent(fmean(one.confidence for one in measured), 1),
        percent(fmean(one.accuracy for one in measured), 1),
        percent(fmean(one.expected_error for one in measured), 1),
    ]


def _mean(measured: Sequence[BeyondAccuracy], of: Callable[[BeyondAccuracy], float]) -> float:
    return fmean(of(one) for one in measured)
