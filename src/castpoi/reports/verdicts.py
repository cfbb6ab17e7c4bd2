"""The significance tests a report needs, judged in the families its tables ask for."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from castpoi.core.progress import SILENCE, Progress
from castpoi.evaluation.significance import DRAWS, PairedTest, Verdict, judge, paired_test
from castpoi.methods.outline import STRONGEST, Family, TableOutline
from castpoi.reports.evidence import CityEvidence, Evidence, strongest_rival

BOOTSTRAP_SEED: Final = 42
_Key = tuple[str, Family, tuple[str, str] | None]
"""Table, family, and the city and metric of a family that is corrected cell by cell."""


@dataclass(frozen=True, kw_only=True)
class Judged:
    """One test of a table, judged with its family."""

    table: str
    city: str
    family: Family
    verdict: Verdict

    @property
    def is_against_strongest(self) -> bool:
        """Whether it was made against the strongest baseline, not against a named row."""
        return self.family.against == STRONGEST


@dataclass(frozen=True, kw_only=True)
class _Planned:
    table: TableOutline
    family: Family
    city: CityEvidence
    metric: str
    against: str

    @property
    def key(self) -> _Key:
        """Tests of one key are corrected together; words may be the same in two tables."""
        cell = (self.city.name, self.metric) if self.family.together == "cell" else None
        return self.table.name, self.family, cell


class Verdicts:
    """All judged tests of a report."""

    def __init__(self, judged: list[Judged]) -> None:
        self.all = judged

    def against_row(self, table: str, city: str, row: str, metric: str) -> Verdict | None:
        """The verdict on a row that others are tested against; of several the least certain."""
        verdicts = [
            each.verdict
            for each in self._in(table, city, metric)
            if not each.is_against_strongest and each.verdict.test.against == row
        ]
        return max(verdicts, key=lambda verdict: verdict.wilcoxon_p, default=None)

    def against_strongest(self, table: str, city: str, row: str, metric: str) -> Verdict | None:
        """The verdict on a row of ours against the strongest baseline of a column."""
        for each in self._in(table, city, metric):
            if each.is_against_strongest and each.family.row == row:
                return each.verdict
        return None

    def _in(self, table: str, city: str, metric: str) -> Iterator[Judged]:
        for each in self.all:
            if (each.table, each.city, each.verdict.test.metric) == (table, city, metric):
                yield each


def judge_all(evidence: Evidence, *, draws: int = DRAWS, progress: Progress = SILENCE) -> Verdicts:
    """Make every test that the results at hand allow, and correct each family."""
    planned = [each for table in evidence.tables for each in _planned(table, evidence)]
    tested: list[tuple[_Planned, PairedTest]] = []
    with progress.task("tests", total=len(planned)) as task:
        for each in planned:
            ours, theirs = (each.city.contenders[name] for name in (each.family.row, each.against))
            test = paired_test(ours, theirs, each.metric, seed=BOOTSTRAP_SEED, draws=draws)
            tested.append((each, test))
            task.advance()
    together: dict[_Key, list[tuple[_Planned, PairedTest]]] = {}
    for each, test in tested:
        together.setdefault(each.key, []).append((each, test))
    judged = []
    for members in together.values():
        words = _family_words(members[0][0])
        verdicts = judge([test for _, test in members], family=words)
        judged += [
            Judged(table=each.table.name, city=each.city.name, family=each.family, verdict=verdict)
            for (each, _), verdict in zip(members, verdicts, strict=True)
        ]
    return Verdicts(judged)


def _planned(table: TableOutline, evidence: Evidence) -> Iterator[_Planned]:
    for family in table.families:
        for city in evidence.cities:
            if family.row not in city.contenders:
                continue
            for metric in family.metrics:
                for against in _opponents(table, family, city, metric):
                    yield _Planned(
                        table=table, family=family, city=city, metric=metric, against=against
                    )


def _opponents(table: TableOutline, family: Family, city: CityEvidence, metric: str) -> list[str]:
    if family.against == STRONGEST:
        strongest = strongest_rival(table, city, metric)
        return [] if strongest is None else [strongest.name]
    return [name for name in family.against if name in city.contenders and name != family.row]


def _family_words(planned: _Planned) -> str:
    tested = planned.table.label(planned.family.row)
    words = f"{planned.table.title}, {planned.family.name} of {tested}"
    return (
        words
        if planned.family.together == "table"
        else f"{words}, {planned.city.name}, {planned.metric}"
    )
