"""Values of a paper next to ours, from the CSV files in `paper/`.

They are those of the two result tables and the dataset table of the CaST-POI paper, in percent. A
city of ours is one of the paper's three only if it has its name and its number of targets.
"""

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from typing import Final

from castpoi.methods.outline import ORACLE, OURS, RIVALS, Row, TableOutline
from castpoi.reports import notes
from castpoi.reports.evidence import CityEvidence, Evidence
from castpoi.reports.outlines import HEADLINE, PAPERS_METHOD, PAPERS_VARIANTS, is_not_paper_preset
from castpoi.reports.significance import Verdicts
from castpoi.reports.table import NOTHING, Cell, Table

_MAIN: Final = "main.csv"
_FAR_POINTS: Final = 1.5


@dataclass(frozen=True)
class PaperValue:
    """A mean over three seeds, in percent."""

    mean: float
    stars: str

    @property
    def text(self) -> str:
        """Its mean and stars."""
        return f"{self.mean:.2f}{self.stars}"


@dataclass(frozen=True)
class PaperCity:
    """A dataset as the paper counts it."""

    name: str
    users: int
    places: int
    checkins: int
    targets: int


def paper_city(name: str, targets: int) -> PaperCity | None:
    """The paper's dataset of this name, if it has this number of targets."""
    for line in _lines("cities.csv"):
        found = PaperCity(
            line["city"], *(int(line[each]) for each in ("users", "places", "checkins", "targets"))
        )
        if (found.name, found.targets) == (name.lower(), targets):
            return found
    return None


def paper_value(
    table: TableOutline, city: PaperCity | None, row: str, metric: str
) -> PaperValue | None:
    """The paper's value for a row of a table."""
    file = _file(table)
    return None if city is None or file is None else _values(file).get((city.name, row, metric))


def paper_lead(table: TableOutline, city: PaperCity | None, metric: str) -> float | None:
    """Lead of CaST-POI over the best other row of the paper's main table, in points."""
    if city is None or _file(table) != _MAIN:
        return None
    values = {
        row: value.mean
        for (name, row, measured), value in _values(_MAIN).items()
        if (name, measured) == (city.name, metric)
    }
    ours = values.pop(PAPERS_METHOD, None)
    return ours - max(values.values()) if ours is not None else None


def _file(table: TableOutline) -> str | None:
    """The paper's table that corresponds to a table of ours."""
    if table.is_ablation:
        is_papers = any(row.name in PAPERS_VARIANTS for row in table.rows)
        return "ablation.csv" if is_papers else None
    baselines = {row.name for row in table.rows if row.role in RIVALS}
    known = {row for _, row, _ in _values(_MAIN)}
    return _MAIN if not baselines or baselines & known else None


@cache
def _values(name: str) -> dict[tuple[str, str, str], PaperValue]:
    return {
        (line["city"], line["row"], line["metric"]): PaperValue(float(line["mean"]), line["stars"])
        for line in _lines(name)
    }


@cache
def _lines(name: str) -> list[dict[str, str]]:
    text = files("castpoi.reports").joinpath("paper", name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def reference_table(evidence: Evidence, verdicts: Verdicts) -> Table | None:
    """Differences from the paper by row and metric; None where no city is the paper's."""
    groups = dict(_groups(evidence, verdicts))
    if not groups:
        return None
    return Table.of_lines(
        groups,
        name="paper",
        title="Compared with the paper",
        caption=notes.REFERENCE,
        footnotes=[notes.NOT_PAPER_PRESET] if any(map(is_not_paper_preset, evidence.rows)) else [],
    )


def _groups(evidence: Evidence, verdicts: Verdicts) -> Iterator[tuple[str, list[dict[str, Cell]]]]:
    """Headings and lines, for each table and each city of the paper."""
    papers = {city.name: paper_city(city.name, city.targets) for city in evidence.cities}
    compared = [city for city in evidence.cities if papers[city.name] is not None]
    for table in (each for each in evidence.tables if ORACLE not in {r.role for r in each.rows}):
        for city in compared:
            rows = [row for row in table.rows if city.has(row)]
            if table.is_ablation:
                what, lines = "change from the full model", _effects(table, city, rows, verdicts)
            else:
                what, lines = "ours less the paper's", _differences(table, city, rows)
            reported = [line for line in lines if any(line[each] != NOTHING for each in HEADLINE)]
            if reported:
                yield f"{table.title}, {city.name}: {what}", reported


def _differences(
    table: TableOutline, city: CityEvidence, rows: Sequence[Row]
) -> list[dict[str, Cell]]:
    """Our mean minus the paper's, for each row."""
    paper = paper_city(city.name, city.targets)

    def cell(row: Row, metric: str) -> Cell:
        reported = paper_value(table, paper, row.name, metric)
        if reported is None:
            return NOTHING
        apart = 100 * city.mean(row.name, metric) - reported.mean
        return Cell(_signed(apart), apart, is_best=abs(apart) > _FAR_POINTS)

    return [_line(row, partial(cell, row)) for row in rows]


def _effects(
    table: TableOutline, city: CityEvidence, rows: Sequence[Row], verdicts: Verdicts
) -> list[dict[str, Cell]]:
    """The change of each variant from the full model, ours and the paper's."""
    full = next((row for row in rows if row.role == OURS), None)
    if full is None:
        return []
    paper, name = paper_city(city.name, city.targets), full.name

    def cell(row: Row, metric: str) -> Cell:
        whole, part = (paper_value(table, paper, each, metric) for each in (name, row.name))
        if whole is None or part is None:
            return NOTHING
        ours = 100 * city.change(name, row.name, metric)
        verdict = verdicts.against_row(table, city.name, row.name, metric)
        stars = "" if verdict is None else verdict.stars
        return Cell(
            _signed(ours),
            ours,
            stars=stars,
            paper=f"{_signed(part.mean - whole.mean)}{part.stars}",
            is_best=verdict is not None
            and verdict.p is not None
            and bool(stars) != bool(part.stars),
        )

    return [_line(row, partial(cell, row)) for row in rows if row.name != name]


def _line(row: Row, cell: Callable[[str], Cell]) -> dict[str, Cell]:
    return {"Method": Cell(row.label), **{metric: cell(metric) for metric in HEADLINE}}


def _signed(points: float) -> str:
    text = f"{points:+.2f}"
    return "0.00" if text in ("-0.00", "+0.00") else text
