"""Values of a paper next to ours, from the CSV files in `paper/`.

They are those of the two result tables and the dataset table of the CaST-POI paper, in percent. A
city of ours is one of the paper's three only if it has its name and its number of targets.
"""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

from castpoi.methods.outline import ORACLE, OURS, RIVALS, TableOutline
from castpoi.reports import notes
from castpoi.reports.evidence import CityEvidence, Evidence
from castpoi.reports.outlines import HEADLINE, PAPERS_METHOD, PAPERS_VARIANTS, is_not_paper_preset
from castpoi.reports.significance import Verdicts
from castpoi.reports.table import NOTHING, Cell, Group, Table, text_cell

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


@dataclass(frozen=True, kw_only=True)
class PaperCity:
    """A dataset as the paper counts it."""

    name: str
    users: int
    places: int
    checkins: int
    targets: int


def paper_city(name: str, targets: int) -> PaperCity | None:
    """The paper's dataset of this name, if it has this number of targets."""
    found = _cities().get(name.lower())
    return found if found is not None and found.targets == targets else None


def paper_value(
    table: TableOutline, city: PaperCity | None, row: str, metric: str
) -> PaperValue | None:
    """The paper's value for a row of a table."""
    file = _file(table)
    return None if city is None or file is None else _values(file).get((city.name, row, metric))


def paper_improvement(table: TableOutline, city: PaperCity | None, metric: str) -> float | None:
    """Relative improvement of CaST-POI over the best other row of the paper's main table."""
    if city is None or _file(table) != _MAIN:
        return None
    values = {
        row: value.mean
        for (name, row, measured), value in _values(_MAIN).items()
        if (name, measured) == (city.name, metric)
    }
    ours = values.pop(PAPERS_METHOD, None)
    return ours / max(values.values()) - 1 if ours is not None else None


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
def _cities() -> dict[str, PaperCity]:
    return {
        (name := line.pop("city")): PaperCity(
            name=name, **{key: int(value) for key, value in line.items()}
        )
        for line in _lines("cities.csv")
    }


def _lines(name: str) -> list[dict[str, str]]:
    text = files("castpoi.reports").joinpath("paper", name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def reference_table(evidence: Evidence, verdicts: Verdicts) -> Table | None:
    """Differences from the paper by row and metric; None where no city is the paper's."""
    groups = [group for table in evidence.tables for group in _groups(table, evidence, verdicts)]
    if not groups:
        return None
    return Table(
        name="paper",
        title="Compared with the paper",
        caption=notes.BESIDE_PAPER,
        footnotes=[notes.NOT_PAPER_PRESET] if any(map(is_not_paper_preset, evidence.rows)) else [],
        columns=["Method", *HEADLINE],
        groups=groups,
    )


def _groups(table: TableOutline, evidence: Evidence, verdicts: Verdicts) -> Iterator[Group]:
    for city in evidence.cities:
        paper = paper_city(city.name, city.targets)
        if paper is None or any(row.role == ORACLE for row in table.rows):
            continue
        if table.is_ablation:
            rows = list(_effects(_Compared(table, city, paper), verdicts))
            what = "change from the full model"
        else:
            rows = list(_differences(_Compared(table, city, paper)))
            what = "ours less the paper's"
        reported = [row for row in rows if row[1:] != [NOTHING] * len(HEADLINE)]
        if reported:
            yield Group(heading=f"{table.title}, {city.name}: {what}", rows=reported)


@dataclass(frozen=True)
class _Compared:
    """A table of ours on a city of the paper."""

    table: TableOutline
    city: CityEvidence
    paper: PaperCity

    def reported(self, row: str, metric: str) -> PaperValue | None:
        return paper_value(self.table, self.paper, row, metric)


def _differences(compared: _Compared) -> Iterator[list[Cell]]:
    """Our mean minus the paper's, for each row."""
    for row in filter(compared.city.has, compared.table.rows):
        yield [text_cell(row.label), *(_difference(compared, row.name, each) for each in HEADLINE)]


def _difference(compared: _Compared, row: str, metric: str) -> Cell:
    reported = compared.reported(row, metric)
    if reported is None:
        return NOTHING
    apart = 100 * compared.city.mean(row, metric) - reported.mean
    return Cell(text=_signed(apart), value=apart, is_best=abs(apart) > _FAR_POINTS)


def _effects(compared: _Compared, verdicts: Verdicts) -> Iterator[list[Cell]]:
    """The change of each variant from the full model, ours and the paper's."""
    table, city = compared.table, compared.city
    full = next((row.name for row in table.rows if row.role == OURS), None)
    if full is None or full not in city.contenders:
        return
    for row in (each for each in table.rows if city.has(each) and each.name != full):
        cells = (_effect(compared, verdicts, (full, row.name), each) for each in HEADLINE)
        yield [text_cell(row.label), *cells]


def _effect(compared: _Compared, verdicts: Verdicts, rows: tuple[str, str], metric: str) -> Cell:
    whole, part = (compared.reported(row, metric) for row in rows)
    if whole is None or part is None:
        return NOTHING
    ours = 100 * compared.city.change(*rows, metric)
    verdict = verdicts.against_row(compared.table.name, compared.city.name, rows[1], metric)
    stars = "" if verdict is None else verdict.stars
    return Cell(
        text=_signed(ours),
        value=ours,
        stars=stars,
        is_disputed=verdict is not None and verdict.tests_disagree,
        paper=f"{_signed(part.mean - whole.mean)}{part.stars}",
        is_best=verdict is not None and bool(stars) != bool(part.stars),
    )


def _signed(points: float) -> str:
    text = f"{points:+.2f}"
    return "0.00" if text in ("-0.00", "+0.00") else text
