"""The table beside the paper: how far our values are from its own, and what its parts are worth."""

from collections.abc import Iterator
from typing import Final

from castpoi.methods.outline import ORACLE, OURS, TableOutline
from castpoi.reports.evidence import CityEvidence, Evidence, change_between, mean_of
from castpoi.reports.outline import HEADLINE, letter_words
from castpoi.reports.paper_values import PaperCity, paper_city, paper_value
from castpoi.reports.table import NOTHING, Cell, Group, Table, word
from castpoi.reports.verdicts import Verdicts

_FAR: Final = 1.5
"""Points beyond which a method does not do as it does in the paper."""


def paper_table(evidence: Evidence, verdicts: Verdicts) -> Table | None:
    """Differences by row and metric; None where no city of the evidence is the paper's."""
    groups = [group for table in evidence.tables for group in _groups(table, evidence, verdicts)]
    if not groups:
        return None
    return Table(
        name="paper",
        title="Beside the paper",
        caption=(
            "In points of percent. First our mean less the paper's mean of three seeds; bold where "
            f"they are more than {_FAR} points apart. Then what a variant has less or more than "
            "the full model over equally many seeds, ours and the paper's, with the stars of each; "
            "bold where one is significant and the other is not. "
            f"{' '.join(letter_words(evidence.rows))}"
        ).strip(),
        columns=["Method", *HEADLINE],
        groups=groups,
    )


def _groups(table: TableOutline, evidence: Evidence, verdicts: Verdicts) -> Iterator[Group]:
    for city in evidence.cities:
        paper = paper_city(city.name, city.targets)
        if paper is None or any(row.role == ORACLE for row in table.rows):
            continue
        lines = (
            _effects(table, city, paper, verdicts)
            if table.is_ablation
            else _differences(table, city, paper)
        )
        told = [line for line in lines if line[1:] != [NOTHING] * len(HEADLINE)]
        words = "change from the full model" if table.is_ablation else "ours less the paper's"
        if told:
            yield Group(heading=f"{table.title}, {city.name}: {words}", rows=told)


def _differences(table: TableOutline, city: CityEvidence, paper: PaperCity) -> list[list[Cell]]:
    return [
        [word(row.label), *(_difference(table, city, paper, row.name, each) for each in HEADLINE)]
        for row in table.rows
        if row.name in city.contenders
    ]


def _difference(
    table: TableOutline, city: CityEvidence, paper: PaperCity, row: str, metric: str
) -> Cell:
    told = paper_value(table, paper, row, metric)
    if told is None:
        return NOTHING
    apart = 100 * mean_of(city.contenders[row], metric) - told.mean
    return Cell(text=_signed(apart), value=apart, is_best=abs(apart) > _FAR)


def _effects(
    table: TableOutline, city: CityEvidence, paper: PaperCity, verdicts: Verdicts
) -> list[list[Cell]]:
    full = next((row.name for row in table.rows if row.role == OURS), None)
    if full is None or full not in city.contenders:
        return []
    variants = [row for row in table.rows if row.name in city.contenders and row.name != full]
    return [
        [
            word(row.label),
            *(_effect(table, city, paper, verdicts, full, row.name, each) for each in HEADLINE),
        ]
        for row in variants
    ]


def _effect(
    table: TableOutline,
    city: CityEvidence,
    paper: PaperCity,
    verdicts: Verdicts,
    full: str,
    row: str,
    metric: str,
) -> Cell:
    whole, part = (paper_value(table, paper, name, metric) for name in (full, row))
    if whole is None or part is None:
        return NOTHING
    ours = 100 * change_between(city, full, row, metric)
    verdict = verdicts.against_row(table.name, city.name, row, metric)
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
    words = f"{points:+.2f}"
    return "0.00" if words in ("-0.00", "+0.00") else words
