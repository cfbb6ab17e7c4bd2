"""The main table and the ablations: metrics of every row in percent, with stars and the paper.

Stars are on the improvement over the strongest baseline, and on variants of the full model.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import stdev

from castpoi.evaluation.significance import Verdict
from castpoi.methods.outline import ORACLE, OURS, Row, TableOutline
from castpoi.reports import notes
from castpoi.reports.evidence import (
    CityEvidence,
    Evidence,
    baselines_on,
    lacks_baselines,
    strongest_baseline,
)
from castpoi.reports.outlines import HEADLINE, PAPERS_METHOD, is_not_paper_preset
from castpoi.reports.reference import PaperCity, paper_city, paper_improvement, paper_value
from castpoi.reports.significance import Verdicts, seeds_of
from castpoi.reports.table import NOTHING, Cell, Group, Table, count, text_cell


def metric_table(outline: TableOutline, evidence: Evidence, verdicts: Verdicts) -> Table:
    """The table of an outline, one group for each city; rows without a result are left out."""
    metrics = metrics_of(outline)
    cities = cities_of(outline, evidence)
    groups = [_CityGroup(outline, city, metrics, verdicts).group() for city in cities]
    return Table(
        name=outline.name,
        title=outline.title,
        caption=notes.METRICS,
        footnotes=list(_footnotes(outline, evidence, verdicts, groups)),
        columns=["Method", "Seeds", *metrics],
        groups=groups,
        sorted_by=metrics[-1],
    )


def metrics_of(outline: TableOutline) -> Sequence[str]:
    """The columns of a table: the metrics that its families test, or the paper's five."""
    tested = dict.fromkeys(metric for family in outline.families for metric in family.metrics)
    return list(tested) or HEADLINE


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
                Cell(text=row.label, note=self._folders(row), is_ours=row.role == OURS),
                count(len(self.city.of(row.name)) if row.is_learned else None),
                *(self._cell(row, metric, present) for metric in self.metrics),
            ]
            for row in present
        ]
        ours = [row for row in present if row.role == OURS]
        lines = {row.label: [self._improvement(row, each) for each in self.metrics] for row in ours}
        tested = {label: cells for label, cells in lines.items() if cells != [NOTHING] * len(cells)}
        foot = [
            [text_cell(_improvement_label(label, len(tested))), text_cell(""), *cells]
            for label, cells in tested.items()
        ]
        return Group(heading=self.city.name, rows=rows, foot=foot)

    def _cell(self, row: Row, metric: str, present: Sequence[Row]) -> Cell:
        mean = self.city.mean(row.name, metric)
        values = [
            100 * (result.metrics[metric] or 0.0)
            for result in self.city.contenders[row.name].results
        ]
        verdict = self.verdicts.against_row(self.outline.name, self.city.name, row.name, metric)
        reported = paper_value(self.outline, self.paper, row.name, metric)
        highest = max(self.city.mean(each.name, metric) for each in present)
        has_ours = any(each.role == OURS for each in self.outline.rows)
        strongest = strongest_baseline(self.outline, self.city, metric)
        return Cell(
            text=f"{100 * mean:.2f}",
            value=100 * mean,
            std=stdev(values) if row.is_learned and len(values) > 1 else None,
            stars="" if verdict is None else verdict.stars,
            is_disputed=verdict is not None and verdict.tests_disagree,
            paper="" if reported is None else reported.text,
            is_best=mean == highest and len(present) > 1 and not _has_oracle(self.outline),
            is_strongest=strongest == row and has_ours,
            note=self._folders(row) + ("" if verdict is None else f"\n{_in_words(verdict)}"),
        )

    def _improvement(self, row: Row, metric: str) -> Cell:
        """Relative improvement over the strongest baseline, over all seeds of both."""
        city, outline = self.city, self.outline
        verdict = self.verdicts.against_strongest(outline.name, city.name, row.name, metric)
        if verdict is None:
            return NOTHING
        strongest = verdict.test.against
        theirs = city.mean(strongest, metric)
        if not theirs:
            return NOTHING
        improvement = 100 * (city.mean(row.name, metric) / theirs - 1)
        is_papers = row.method == PAPERS_METHOD
        reported = paper_improvement(outline, self.paper, metric) if is_papers else None
        return Cell(
            text=f"{improvement:+.2f} %",
            value=improvement,
            stars=verdict.stars,
            is_disputed=verdict.tests_disagree,
            paper="" if reported is None else f"{100 * reported:+.2f} %",
            note=f"against {outline.label(strongest)}\n{_in_words(verdict)}",
        )

    def _folders(self, row: Row) -> str:
        return "\n".join(str(each.folder) for each in self.city.of(row.name))


def _improvement_label(label: str, number: int) -> str:
    return "Improvement" if number == 1 else f"Improvement of {label}"


def _in_words(verdict: Verdict) -> str:
    """A test in one line."""
    test, ranked = verdict.test, verdict.test.wilcoxon
    p = [notes.p_value(each) for each in (verdict.wilcoxon_p, verdict.bootstrap_p)]
    return (
        f"p = {p[0]} (Wilcoxon) and {p[1]} (bootstrap), Holm over {verdict.family_size}; "
        f"{ranked.wins} better, {ranked.ties} equal, {ranked.losses} worse; seeds {seeds_of(test)}"
    )


def _footnotes(
    outline: TableOutline, evidence: Evidence, verdicts: Verdicts, groups: Sequence[Group]
) -> Iterator[str]:
    cells = [cell for group in groups for row in group for cell in row]
    judged = verdicts.of_table(outline.name)
    cities = cities_of(outline, evidence)
    ours = [row for row in outline.rows if row.role == OURS]
    flags = {
        notes.KNOWN_TIME: outline.known_time,
        notes.ORACLE: _has_oracle(outline),
        notes.NOT_PAPER_PRESET: any(map(is_not_paper_preset, ours)),
        notes.STRONGER_ELSEWHERE: any(_is_beaten(outline, evidence, city) for city in cities),
        notes.FEWER_BASELINES: any(
            baselines_on(outline, city) and lacks_baselines(outline, city) for city in cities
        ),
        notes.STARS: bool(judged),
        notes.DISPUTED: any(cell.is_disputed for cell in cells),
        notes.SEEDS_LEFT_OUT: any(
            _leaves_seeds_out(evidence, each.city, each.verdict) for each in judged
        ),
        notes.ONE_SEED: any(_is_of_one_seed(each.verdict) for each in judged),
        notes.PAPER: any(cell.paper for cell in cells),
    }
    return (note for note, is_needed in flags.items() if is_needed)


def _is_beaten(outline: TableOutline, evidence: Evidence, city: CityEvidence) -> bool:
    """Whether another table has a stronger baseline on a city, by any metric."""
    for metric in metrics_of(outline):
        own = strongest_baseline(outline, city, metric)
        best = evidence.strongest(city, metric)
        if own and best and city.mean(own.name, metric) < city.mean(best.name, metric):
            return True
    return False


def _leaves_seeds_out(evidence: Evidence, city: str, verdict: Verdict) -> bool:
    contenders = next(each for each in evidence.cities if each.name == city).contenders
    test = verdict.test
    sides = ((test.contender, test.seeds), (test.against, test.against_seeds))
    return any(contenders[name].seeds != seeds for name, seeds in sides)


def _is_of_one_seed(verdict: Verdict) -> bool:
    return 1 in (len(verdict.test.seeds), len(verdict.test.against_seeds))
