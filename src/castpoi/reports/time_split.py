"""The order of methods by a global time split, and by the other split of the same city."""

from collections.abc import Iterator
from statistics import fmean

from castpoi.checkins import record
from castpoi.evaluation.metrics import kendall_tau, metrics_of
from castpoi.evaluation.result import RANK
from castpoi.methods.outline import OURS, Row
from castpoi.reports import notes
from castpoi.reports.evidence import CityEvidence, Evidence, source_anchor
from castpoi.reports.table import Cell, Group, Table

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
