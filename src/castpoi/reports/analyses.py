"""Analyses of a city: metrics by stratum and by pool size, and beyond accuracy."""

from collections.abc import Sequence
from statistics import fmean
from typing import Final

from castpoi.evaluation.pool import PoolCurve, pool_curve
from castpoi.evaluation.strata import Stratum, strata
from castpoi.methods.outline import OURS, Row
from castpoi.reports import notes
from castpoi.reports.evidence import CityEvidence, Evidence
from castpoi.reports.table import NOTHING, Cell, Group, Table, count, number, percent

CUTOFF: Final = 10
METRIC: Final = f"HR@{CUTOFF}"
AXES: Final = {
    "history": "Visits before",
    "frequency": "Popularity of place",
    "return": "Been there before",
    "distance": "Distance from last visit",
    "gap": "Time since last visit",
    "overlap": "Same visits in train",
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
    cells = [
        Cell(
            f"{100 * mean:.1f}",
            100 * mean,
            is_best=mean == highest and not stratum.is_too_small,
            is_faint=stratum.is_too_small,
            note=f"{stratum.n:,} targets",
        )
        if mean is not None
        else NOTHING
        for mean in means
    ]
    return [Cell(AXES[stratum.axis]), Cell(stratum_name(stratum)), count(stratum.n), *cells]


def pool_of(evidence: Evidence, city: CityEvidence) -> PoolCurve:
    """HR@10 by pool size."""
    return pool_curve([city.contenders[row.name] for row in evidence.rows_of(city)], CUTOFF)


def pool_table(evidence: Evidence, city: CityEvidence, curve: PoolCurve) -> Table:
    """One line for each row, one column for each pool size."""
    rows = evidence.rows_of(city)
    highest = [max(values) for values in zip(*curve.values.values(), strict=True)]
    lines = [
        [
            Cell(row.label, is_ours=row.role == OURS),
            *(
                Cell(f"{100 * value:.1f}", 100 * value, is_best=value == best and len(rows) > 1)
                for value, best in zip(curve.values[row.name], highest, strict=True)
            ),
        ]
        for row in rows
    ]
    return Table(
        name=f"pool-{city.slug}",
        title=f"Pool size on {city.name}",
        caption=notes.POOL,
        footnotes=_flips(curve, {row.name: row.label for row in rows}),
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
    return Table.of_lines(
        {"": [_beyond_line(city, row) for row in evidence.rows_of(city)]},
        name=f"beyond-accuracy-{city.slug}",
        title=f"Beyond accuracy on {city.name}",
        caption=notes.BEYOND,
    )


def _beyond_line(city: CityEvidence, row: Row) -> dict[str, Cell]:
    results = city.contenders[row.name].results
    measured = [result.beyond for result in results]
    calibrated = [one.calibration for one in measured] if row.has_seeds else []
    note = "\n".join(result.name for result in results)

    def softmax(values: list[float]) -> Cell:
        return percent(fmean(values), 1) if values else NOTHING

    return {
        "Method": Cell(row.label, note=note, is_ours=row.role == OURS),
        "Median km off": number(fmean(one.median_km_off for one in measured)),
        "Mean km off": number(fmean(one.mean_km_off for one in measured)),
        "Coverage %": percent(fmean(one.coverage for one in measured), 1),
        "Popularity of first": number(fmean(one.popularity_of_first for one in measured), 1),
        "Popularity of listed": number(fmean(one.popularity_of_listed for one in measured), 1),
        "Popularity of visited": number(fmean(one.popularity_of_target for one in measured), 1),
        "Mean softmax %": softmax([one.confidence for one in calibrated]),
        "Right first %": softmax([one.accuracy for one in calibrated]),
        "ECE %": softmax([one.expected_error for one in calibrated]),
    }
