"""The main table and the ablations: metrics of every row in percent, with stars and the paper.

Stars are on the leads of our methods, and on variants of the full model.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from castpoi.checkins import record
from castpoi.evaluation.metrics import per_target
from castpoi.evaluation.result import RANK
from castpoi.evaluation.significance import Verdict
from castpoi.methods.outline import ORACLE, OURS, STRONGEST, Row, TableOutline
from castpoi.reports import notes
from castpoi.reports.evidence import CityEvidence, Evidence, source_anchor
from castpoi.reports.outlines import HEADLINE, PAPERS_METHOD, is_not_paper_preset
from castpoi.reports.reference import PaperCity, paper_city, paper_lead, paper_value
from castpoi.reports.significance import Verdicts, lead_cell, seeds_of
from castpoi.reports.table import NOTHING, Cell, Group, Table, count, spread_cell

_OF_STRATA: Final = (("HR@10", "revisit"), ("HR@10", "new"))
"""Metrics of strata, after those of all targets."""


def metric_table(outline: TableOutline, evidence: Evidence, verdicts: Verdicts) -> Table:
    """The table of an outline, one group for each city; rows without a result are left out."""
    tested = dict.fromkeys(metric for family in outline.families for metric in family.metrics)
    metrics = list(tested) or HEADLINE
    groups = [
        _CityGroup(outline, city, metrics, verdicts).group()
        for city in cities_of(outline, evidence)
    ]
    ours = [row for row in outline.rows if row.role == OURS]
    footnotes = {
        notes.KNOWN_TIME: outline.known_time,
        notes.ORACLE: _has_oracle(outline),
        notes.NOT_PAPER_PRESET: any(map(is_not_paper_preset, ours)),
        notes.STARS: any(each.table == outline.name for each in verdicts.all),
        notes.PAPER: any(cell.paper for group in groups for row in group for cell in row),
        **dict.fromkeys(evidence.notes_on(ours), True),
        _standard_errors(cities_of(outline, evidence), outline.rows, metrics[-1]): (
            not outline.is_ablation
        ),
    }
    return Table(
        name=outline.name,
        title=outline.title,
        caption=notes.METRICS,
        footnotes=[note for note, is_needed in footnotes.items() if is_needed],
        columns=["Method", "Seeds", *metrics, *(f"{side} {metric}" for metric, side in _OF_STRATA)],
        groups=groups,
        sorted_by=metrics[-1],
    )


def cities_of(outline: TableOutline, evidence: Evidence) -> list[CityEvidence]:
    """The cities that a table shows.

    A city where only our method has a result is in the first of its tables. A city of an ablation
    has variants, a city of a table of oracles has an oracle.
    """
    some = [city for city in evidence.cities_for(outline) if _roles_on(outline, city)]
    if _has_oracle(outline):
        return [city for city in some if ORACLE in _roles_on(outline, city)]
    shown = [
        city
        for city in some
        if _roles_on(outline, city) != {OURS}
        or (not outline.is_ablation and outline == _first_on(city, evidence))
    ]
    return shown or some


def _standard_errors(cities: Sequence[CityEvidence], rows: Sequence[Row], metric: str) -> str:
    """The standard error over users of the best row of each city, of one seed."""
    errors = []
    for city in cities:
        best = max(filter(city.has, rows), key=lambda row: city.mean(row.name, metric))
        table = city.of(best.name)[0].result.ranks
        values = per_target(metric, table[RANK].to_numpy())
        of_users = np.bincount(table[record.USER].to_numpy(), values - values.mean())
        errors.append(f"{city.name} {100 * np.linalg.norm(of_users) / len(values):.2f}")
    return f"Standard error over users of the best {metric}, in points: {'; '.join(errors)}."


def _roles_on(outline: TableOutline, city: CityEvidence) -> set[str]:
    return {row.role for row in outline.rows if city.has(row)}


def _first_on(city: CityEvidence, evidence: Evidence) -> TableOutline:
    tables = (*evidence.tables, *evidence.time_tables)
    return next(
        each for each in tables if city in evidence.cities_for(each) and _roles_on(each, city)
    )


def _has_oracle(outline: TableOutline) -> bool:
    return any(row.role == ORACLE for row in outline.rows)


@dataclass(frozen=True)
class _CityGroup:
    """One city of a metric table, the best row by the last metric first."""

    outline: TableOutline
    city: CityEvidence
    metrics: Sequence[str]
    verdicts: Verdicts

    @property
    def paper(self) -> PaperCity | None:
        return paper_city(self.city.name, self.city.targets)

    def group(self) -> Group:
        present = [row for row in self.outline.rows if self.city.has(row)]
        present.sort(key=lambda row: -self.city.mean(row.name, self.metrics[-1]))
        columns = [*((metric, None) for metric in self.metrics), *_OF_STRATA]
        highest = [max(self.city.mean(row.name, *column) for row in present) for column in columns]
        rows = [
            [
                Cell(row.label, note=self._folders(row), is_ours=row.role == OURS),
                count(len(self.city.of(row.name)) if row.has_seeds else None),
                *(
                    self._cell(row, *column, present, best)
                    for column, best in zip(columns, highest, strict=True)
                ),
            ]
            for row in present
        ]
        return Group(heading=self.city.name, rows=rows, foot=list(self._leads()))

    def _cell(
        self, row: Row, metric: str, stratum: str | None, present: Sequence[Row], best: float
    ) -> Cell:
        spread = self.city.spread(row.name, metric, stratum)
        if spread.mean is None:
            return NOTHING
        shown = spread_cell(
            spread,
            is_best=spread.mean == best and len(present) > 1 and not _has_oracle(self.outline),
            link=f"#{source_anchor(self.city, row)}",
            note=self._folders(row),
        )
        if stratum is not None:
            return replace(shown, std=None)
        verdict = self.verdicts.against_row(self.outline, self.city.name, row.name, metric)
        reported = paper_value(self.outline, self.paper, row.name, metric)
        has_ours = any(each.role == OURS for each in self.outline.rows)
        return replace(
            shown,
            stars="" if verdict is None else verdict.stars,
            paper="" if reported is None else reported.text,
            is_strongest=has_ours and self.city.strongest_of(present, metric) == row,
            note=shown.note + ("" if verdict is None else f"\n{_in_words(verdict)}"),
        )

    def _leads(self) -> Iterator[list[Cell]]:
        """The leads of our methods, over all seeds of both; an ablation has stars instead."""
        lines: dict[tuple[str, str], dict[str, Cell]] = {}
        for judged in () if self.outline.is_ablation else self.verdicts.all:
            if (judged.table, judged.city) == (self.outline.name, self.city.name):
                test, is_best = judged.verdict.test, judged.family.against == STRONGEST
                over = "the best baseline" if is_best else self.outline.label(test.against)
                line = lines.setdefault((judged.family.row, over), {})
                line[test.metric] = self._lead(judged.verdict, is_over_best=is_best)
        for (row, over), cells in lines.items():
            label = Cell(f"{self.outline.label(row)} over {over}")
            yield [label, Cell(""), *(cells.get(each, NOTHING) for each in self.metrics)] + [
                Cell("") for _ in _OF_STRATA
            ]

    def _lead(self, verdict: Verdict, *, is_over_best: bool) -> Cell:
        test = verdict.test
        lead = self.city.mean(test.contender, test.metric) - self.city.mean(
            test.against, test.metric
        )
        is_papers = is_over_best and test.contender == PAPERS_METHOD
        reported = paper_lead(self.outline, self.paper, test.metric) if is_papers else None
        return lead_cell(
            verdict,
            lead,
            paper="" if reported is None else f"{reported:+.2f}",
            note=f"over {self.outline.label(test.against)}\n{_in_words(verdict)}",
        )

    def _folders(self, row: Row) -> str:
        return "\n".join(str(each.folder) for each in self.city.of(row.name))


def _in_words(verdict: Verdict) -> str:
    """A test in one line."""
    test, ranked = verdict.test, verdict.test.wilcoxon
    p = "no verdict" if verdict.p is None else notes.p_equals(verdict.p)
    return (
        f"{p}, Holm over {verdict.family_size}; {ranked.wins} better, {ranked.ties} equal, "
        f"{ranked.losses} worse; seeds {seeds_of(test)}"
    )
