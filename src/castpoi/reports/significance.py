"""The significance tests of a report: made, corrected by family, and as a table."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from castpoi.core.progress import SILENCE, Progress
from castpoi.evaluation.compare import Contender, ranks_side_by_side
from castpoi.evaluation.metrics import per_target
from castpoi.evaluation.significance import (
    ALPHA,
    DRAWS,
    PairedTest,
    Verdict,
    judge,
    paired_test,
    signed_rank,
)
from castpoi.methods.outline import STRONGEST, Family, TableOutline
from castpoi.reports import notes
from castpoi.reports.evidence import CityEvidence, Evidence, strongest_baseline
from castpoi.reports.table import Cell, Group, Table, count, number, text_cell

BOOTSTRAP_SEED: Final = 42
_NOISE_METRIC: Final = "MRR"
_Key = tuple[str, Family, tuple[str, str] | None]
"""Table, family, and the city and metric of a family that is corrected for each cell."""


@dataclass(frozen=True, kw_only=True)
class Judged:
    """One test of a table, corrected with its family."""

    table: str
    city: str
    family: Family
    verdict: Verdict

    @property
    def is_against_strongest(self) -> bool:
        """Whether it is against the strongest baseline, not against a given row."""
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
        """Tests with equal keys are corrected together."""
        cell = (self.city.name, self.metric) if self.family.together == "cell" else None
        return self.table.name, self.family, cell

    @property
    def family_name(self) -> str:
        name = f"{self.table.title}, {self.family.name} of {self.table.label(self.family.row)}"
        is_cell = self.family.together == "cell"
        return f"{name}, {self.city.name}, {self.metric}" if is_cell else name


class Verdicts:
    """All tests of a report."""

    def __init__(self, judged: list[Judged]) -> None:
        self.all = judged

    def against_row(self, table: str, city: str, row: str, metric: str) -> Verdict | None:
        """The test of the full model against a row; of several the least certain."""
        verdicts = [
            each.verdict
            for each in self._of(table, city, metric)
            if not each.is_against_strongest and each.verdict.test.against == row
        ]
        return max(verdicts, key=lambda verdict: verdict.wilcoxon_p, default=None)

    def against_strongest(self, table: str, city: str, row: str, metric: str) -> Verdict | None:
        """The test of a row of ours against the strongest baseline of a column."""
        for each in self._of(table, city, metric):
            if each.is_against_strongest and each.family.row == row:
                return each.verdict
        return None

    def of_table(self, table: str) -> list[Judged]:
        """The tests of a table."""
        return [each for each in self.all if each.table == table]

    def _of(self, table: str, city: str, metric: str) -> Iterator[Judged]:
        for each in self.all:
            if (each.table, each.city, each.verdict.test.metric) == (table, city, metric):
                yield each


def judge_all(evidence: Evidence, *, draws: int = DRAWS, progress: Progress = SILENCE) -> Verdicts:
    """Make every test that the results allow, and correct each family."""
    planned = [each for table in evidence.tables for each in _planned(table, evidence)]
    families: dict[_Key, list[tuple[_Planned, PairedTest]]] = {}
    with progress.task("tests", total=len(planned)) as task:
        for each in planned:
            ours, theirs = (each.city.contenders[name] for name in (each.family.row, each.against))
            test = paired_test(ours, theirs, each.metric, seed=BOOTSTRAP_SEED, draws=draws)
            families.setdefault(each.key, []).append((each, test))
            task.advance()
    judged = []
    for members in families.values():
        verdicts = judge([test for _, test in members], family=members[0][0].family_name)
        judged += [
            Judged(table=each.table.name, city=each.city.name, family=each.family, verdict=verdict)
            for (each, _), verdict in zip(members, verdicts, strict=True)
        ]
    return Verdicts(judged)


def _planned(table: TableOutline, evidence: Evidence) -> Iterator[_Planned]:
    for family in table.families:
        for city in (each for each in evidence.cities if family.row in each.contenders):
            for metric in family.metrics:
                for against in _opponents(table, family, city, metric):
                    yield _Planned(
                        table=table, family=family, city=city, metric=metric, against=against
                    )


def _opponents(table: TableOutline, family: Family, city: CityEvidence, metric: str) -> list[str]:
    if family.against == STRONGEST:
        strongest = strongest_baseline(table, city, metric)
        return [] if strongest is None else [strongest.name]
    return [name for name in family.against if name in city.contenders and name != family.row]


def significance_table(evidence: Evidence, verdicts: Verdicts) -> Table | None:
    """Every test with both p-values, interval and effect; None without tests."""
    if not verdicts.all:
        return None
    outlines = {table.name: table for table in evidence.tables}
    groups: dict[str, list[list[Cell]]] = {}
    for judged in verdicts.all:
        outline = outlines[judged.table]
        tested = outline.label(judged.verdict.test.contender)
        heading = f"{outline.title}, {judged.city}: {tested}"
        groups.setdefault(heading, []).append(_row(outline, judged.verdict))
    return Table(
        name="significance",
        title="Tests",
        caption=notes.TESTS,
        footnotes=[*_summary(verdicts), notes.FEW_SEEDS, *_noise_words(evidence)],
        columns=[
            "Metric",
            "Against",
            "Seeds",
            "Points",
            "95 % interval",
            "p Wilcoxon",
            "p bootstrap",
            "Holm over",
            "Effect",
            "Better / equal / worse",
            "Tests",
        ],
        groups=[Group(heading=heading, rows=rows) for heading, rows in groups.items()],
        words=2,
    )


def _summary(verdicts: Verdicts) -> list[str]:
    """The settings of the bootstrap, and how often the two tests disagree."""
    draws = verdicts.all[0].verdict.test.bootstrap.draws
    disputed = sum(each.verdict.tests_disagree for each in verdicts.all)
    return [
        f"The bootstrap has {draws:,} draws and seed {BOOTSTRAP_SEED}.",
        f"The two tests disagree in {disputed} of {len(verdicts.all)} cases.",
        *([notes.DISAGREEMENT] if disputed else []),
    ]


def _noise_words(evidence: Evidence) -> list[str]:
    """How often two seeds of one row differ significantly."""
    p = seed_noise(evidence)
    differing = sum(each < ALPHA for each in p)
    if not p:
        return []
    return [
        f"Two seeds of one row differ with p < {ALPHA} in {_NOISE_METRIC} (Wilcoxon, uncorrected) "
        f"in {differing} of {len(p)} pairs."
    ]


def seed_noise(evidence: Evidence) -> list[float]:
    """The p-value of every pair of seeds of every learned row, uncorrected."""
    contenders = [own for city in evidence.cities for own in city.contenders.values()]
    return [p for each in contenders if not each.is_counted for p in p_of_pairs(each)]


def p_of_pairs(contender: Contender) -> list[float]:
    """The p-value of every pair of seeds of one contender, uncorrected."""
    ranks = ranks_side_by_side([contender])[contender.name]  # [S, N]
    values = per_target(_NOISE_METRIC, np.asarray(ranks))  # [S, N]
    return [
        signed_rank(values[one] - values[other]).p
        for one, other in combinations(range(len(values)), 2)
    ]


def _row(outline: TableOutline, verdict: Verdict) -> list[Cell]:
    test, drawn, ranked = verdict.test, verdict.test.bootstrap, verdict.test.wilcoxon
    against = outline.label(test.against)
    if outline.is_ablation:
        against = without_name(against, outline.label(test.contender))
    return [
        text_cell(test.metric),
        text_cell(against),
        text_cell(seeds_of(test), order=max(len(test.seeds), len(test.against_seeds))),
        Cell(
            text=f"{100 * drawn.mean:+.2f}",
            value=100 * drawn.mean,
            stars=verdict.stars,
            is_disputed=verdict.tests_disagree,
        ),
        Cell(
            text=f"{100 * drawn.low:+.2f} to {100 * drawn.high:+.2f}",
            order=drawn.low,
            parts={"low": 100 * drawn.low, "high": 100 * drawn.high},
        ),
        _p(verdict.wilcoxon_p, ranked.p, verdict),
        _p(verdict.bootstrap_p, drawn.p, verdict),
        count(verdict.family_size),
        number(ranked.rank_biserial),
        Cell(
            text=f"{ranked.wins} / {ranked.ties} / {ranked.losses}",
            order=ranked.wins - ranked.losses,
            parts={"better": ranked.wins, "equal": ranked.ties, "worse": ranked.losses},
        ),
        text_cell("disagree" if verdict.tests_disagree else "agree"),
    ]


def _p(corrected: float, p: float, verdict: Verdict) -> Cell:
    before = f"{notes.p_value(p)} before the correction"
    note = f"{before}; family of {verdict.family_size}: {verdict.family}"
    return Cell(text=notes.p_value(corrected), value=corrected, note=note, parts={"uncorrected": p})


def seeds_of(test: PairedTest) -> str:
    """Number of seeds on each side of a test; a dash for a counting method."""
    return " / ".join(str(len(seeds) or "–") for seeds in (test.seeds, test.against_seeds))


def without_name(label: str, full: str) -> str:
    """The label of a variant without that of the full model."""
    return label.removeprefix(full).lstrip(", ") or label
