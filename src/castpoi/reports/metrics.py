"""The main table and the ablations: metrics of every row in percent, with stars and the paper.

Stars are on the improvement over the strongest baseline, and on variants of the full model.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from castpoi.evaluation.significance import Verdict
from castpoi.methods.outline import ORACLE, OURS, Row, TableOutline
from castpoi.reports import notes
from castpoi.reports.evidence import CityEvidence, Evidence
from castpoi.reports.outlines import HEADLINE, PAPERS_METHOD, is_not_paper_preset
from castpoi.reports.reference import PaperCity, paper_city, paper_improvement, paper_value
from castpoi.reports.significance import Verdicts, seeds_of
from castpoi.reports.table import NOTHING, Cell, Group, Table, count


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
    }
    return Table(
        name=outline.name,
        title=outline.title,
        caption=notes.METRICS,
        footnotes=[note for note, is_needed in footnotes.items() if is_needed],
        columns=["Method", "Seeds", *metrics],
        groups=groups,
        sorted_by=metrics[-1],
    )


def cities_of(outline: TableOutline, evidence: Evidence) -> list[CityEvidence]:
    """The cities that a table shows.

    A city where only our method has a result is in the first of its tables. A city of an ablation
    has variants, a city of a table of oracles has an oracle.
    """
    some = [city for city in evidence.cities if _roles_on(outline, city)]
    if _has_oracle(outline):
        return [city for city in some if ORACLE in _roles_on(outline, city)]
    shown = [
        city
        for city in some
        if _roles_on(outline, city) != {OURS}
        or (not outline.is_ablation and outline == _first_on(city, evidence))
    ]
    return shown or some


def _roles_on(outline: TableOutline, city: CityEvidence) -> set[str]:
    return {row.role for row in outline.rows if city.has(row)}


def _first_on(city: CityEvidence, evidence: Evidence) -> TableOutline:
    return next(table for table in evidence.tables if _roles_on(table, city))


def _has_oracle(outline: TableOutline) -> bool:
    return any(row.role == ORACLE for row in outline.rows)


@dataclass(frozen=True)
class _CityGroup:
    """One city of a metric table."""

    outline: TableOutline
    city: CityEvidence
    metrics: Sequence[str]
    verdicts: Verdicts

    @property
    def paper(self) -> PaperCity | None:
        return paper_city(self.city.name, self.city.targets)

    def group(self) -> Group:
        present = [row for row in self.outline.rows if self.city.has(row)]
        rows = [
            [
                Cell(row.label, note=self._folders(row), is_ours=row.role == OURS),
                count(len(self.city.of(row.name)) if row.is_learned else None),
                *(self._cell(row, metric, present) for metric in self.metrics),
            ]
            for row in present
        ]
        ours = [row for row in present if row.role == OURS]
        lines = {row.label: [self._improvement(row, each) for each in self.metrics] for row in ours}
        tested = {label: cells for label, cells in lines.items() if cells != [NOTHING] * len(cells)}
        foot = [
            [Cell("Improvement" + (f" of {label}" if len(tested) > 1 else "")), Cell(""), *cells]
            for label, cells in tested.items()
        ]
        return Group(heading=self.city.name, rows=rows, foot=foot)

    def _cell(self, row: Row, metric: str, present: Sequence[Row]) -> Cell:
        mean, std = 100 * self.city.mean(row.name, metric), self.city.spread(row.name, metric).std
        verdict = self.verdicts.against_row(self.outline.name, self.city.name, row.name, metric)
        reported = paper_value(self.outline, self.paper, row.name, metric)
        highest = 100 * max(self.city.mean(each.name, metric) for each in present)
        has_ours = any(each.role == OURS for each in self.outline.rows)
        return Cell(
            f"{mean:.2f}",
            mean,
            std=None if std is None else 100 * std,
            stars="" if verdict is None else verdict.stars,
            is_disputed=verdict is not None and verdict.tests_disagree,
            paper="" if reported is None else reported.text,
            is_best=mean == highest and len(present) > 1 and not _has_oracle(self.outline),
            is_strongest=has_ours and self.city.strongest_of(present, metric) == row,
            note=self._folders(row) + ("" if verdict is None else f"\n{_in_words(verdict)}"),
        )

    def _improvement(self, row: Row, metric: str) -> Cell:
        """Relative improvement over the strongest baseline, over all seeds of both."""
        city, outline = self.city, self.outline
        verdict = self.verdicts.against_strongest(outline.name, city.name, row.name, metric)
        theirs = 0.0 if verdict is None else city.mean(verdict.test.against, metric)
        if verdict is None or not theirs:
            return NOTHING
        improvement = 100 * (city.mean(row.name, metric) / theirs - 1)
        is_papers = row.method == PAPERS_METHOD
        reported = paper_improvement(outline, self.paper, metric) if is_papers else None
        return Cell(
            f"{improvement:+.2f} %",
            improvement,
            stars=verdict.stars,
            is_disputed=verdict.tests_disagree,
            paper="" if reported is None else f"{100 * reported:+.2f} %",
            note=f"against {outline.label(verdict.test.against)}\n{_in_words(verdict)}",
        )

    def _folders(self, row: Row) -> str:
        return "\n".join(str(each.folder) for each in self.city.of(row.name))


def _in_words(verdict: Verdict) -> str:
    """A test in one line."""
    test, ranked = verdict.test, verdict.test.wilcoxon
    p = [notes.p_value(each) for each in (verdict.wilcoxon_p, verdict.bootstrap_p)]
    return (
        f"p = {p[0]} (Wilcoxon) and {p[1]} (bootstrap), Holm over {verdict.family_size}; "
        f"{ranked.wins} better, {ranked.ties} equal, {ranked.losses} worse; seeds {seeds_of(test)}"
    )
