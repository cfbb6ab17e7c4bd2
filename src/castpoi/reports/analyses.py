"""Analyses of a city: strata, pool size, beyond accuracy, learned biases, and the order by time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import Final

from castpoi.checkins import record
from castpoi.evaluation.metrics import kendall_tau, metrics_of
from castpoi.evaluation.pool import PoolCurve, pool_curve
from castpoi.evaluation.result import RANK
from castpoi.evaluation.strata import Stratum, strata
from castpoi.methods.outline import OURS, Row
from castpoi.reports import notes
from castpoi.reports.evidence import CityEvidence, Evidence, RowResult, source_anchor
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
        footnotes=[f"Popularity of the places visited: {_popularity_of_targets(city):.1f}."],
    )


def _popularity_of_targets(city: CityEvidence) -> float:
    """Mean check-ins in train of the places visited, the same for all rows."""
    return city.results[0].result.beyond.popularity_of_target


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
        "Mean softmax %": softmax([one.confidence for one in calibrated]),
        "Right first %": softmax([one.accuracy for one in calibrated]),
        "ECE %": softmax([one.expected_error for one in calibrated]),
    }


_BY: str = "MRR"


def pairs(evidence: Evidence) -> Iterator[tuple[CityEvidence, CityEvidence]]:
    """Each time split, and the other split of its city."""
    for city in (each for each in evidence.cities if each.is_by_time and not each.known_time):
        for other in evidence.cities:
            traits = other.town, other.part, other.known_time, other.is_by_time
            if traits == (city.town, city.part, False, False):
                yield city, other


def order_table(evidence: Evidence, city: CityEvidence, other: CityEvidence) -> Table | None:
    """MRR of the methods that both splits have, and how far their orders agree."""
    rows = [row for row in evidence.rows_of(city) if other.has(row)]
    if len(rows) < 2:
        return None
    columns = {
        "Leave one out": [other.mean(row.name, _BY) for row in rows],
        "Time, all visits": [city.mean(row.name, _BY) for row in rows],
        "Time, last visits": [_of_last_visits(city, row) for row in rows],
    }
    first, *others = columns
    taus = "; ".join(f"{name} {kendall_tau(columns[first], columns[name]):.2f}" for name in others)
    places = {name: _places(values) for name, values in columns.items()}
    lines = [
        [
            Cell(row.label, is_ours=row.role == OURS),
            *(
                Cell(
                    f"{places[name][at]}. ({100 * values[at]:.2f})",
                    -float(places[name][at]),
                    parts={_BY: 100 * values[at]},
                    link=f"#{source_anchor(other if name == first else city, row)}",
                )
                for name, values in columns.items()
            ),
        ]
        for at, row in enumerate(rows)
    ]
    lines.sort(key=lambda line: -(line[2].value or 0.0))
    return Table(
        name=f"order-{city.slug}",
        title=f"Order of methods, {city.town}",
        caption=notes.ORDER,
        footnotes=[f"Kendall's tau with the order by leave one out, {len(rows)} methods: {taus}."],
        columns=["Method", *columns],
        groups=[Group(rows=lines)],
        sorted_by="Time, all visits",
    )


def _of_last_visits(city: CityEvidence, row: Row) -> float:
    """MRR of the last target of every user, mean over seeds."""
    tables = (
        each.result.ranks.unique(record.USER, keep="last", maintain_order=True)
        for each in city.of(row.name)
    )
    return fmean(metrics_of(table[RANK].to_numpy())[_BY] or 0.0 for table in tables)


def _places(values: list[float]) -> list[int]:
    """The place of each value, the highest first."""
    return [1 + sum(other > value for other in values) for value in values]


@dataclass(frozen=True, kw_only=True)
class LearnedBias:
    """One number for each bucket, added to the attention logit of a visit."""

    kind: str  # `spatial`: km between visit and candidate; `temporal`: hours since the visit
    edges: Sequence[float]
    values: Sequence[float]
    is_sloped: bool  # whether it started at 1 near to -1 far (`ModelConfig.spatial_start`), not 0

    @property
    def start(self) -> list[float]:
        """Its values before training."""
        last = max(1, len(self.values) - 1)
        return [1 - 2 * at / last if self.is_sloped else 0.0 for at in range(len(self.values))]

    @property
    def buckets(self) -> list[str]:
        """Names of the buckets."""
        units = [self._unit(edge) for edge in self.edges]
        edges = list(zip(self.edges, units, strict=True))
        between = [
            f"{low / size:g}–{high / size:g} {name}"
            for (low, _), (high, (size, name)) in pairwise(edges)
        ]
        first, last = (f"{edge / size:g} {name}" for edge, (size, name) in (edges[0], edges[-1]))
        return [f"< {first}", *between, f"≥ {last}"]

    def _unit(self, edge: float) -> tuple[float, str]:
        if self.kind == "spatial":
            return 1.0, "km"
        return (1.0, "h") if edge <= 24 else (24.0, "d")


def biases_of(result: RowResult) -> dict[str, LearnedBias]:
    """The biases of a result by kind; empty where its method has none."""
    model = result.trained.get("config", {}).get("model", {})
    return {
        kind: LearnedBias(
            kind=kind,
            edges=one["edges"],
            values=one["values"],
            is_sloped=kind == "spatial" and model.get("spatial_start") == "near",
        )
        for kind, one in result.result.manifest.get("learned", {}).items()
    }
