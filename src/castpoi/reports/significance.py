"""The significance tests of a report: made, corrected by family, and as a table."""

from dataclasses import dataclass
from itertools import combinations
from typing import Final

from castpoi.core.progress import SILENCE, Progress
from castpoi.evaluation.compare import Contender, ranks_side_by_side
from castpoi.evaluation.metrics import per_target
from castpoi.evaluation.significance import (
    ALPHA,
    DRAWS,
    PairedTest,
    Verdict,
    judge,
    paired_tests,
    signed_rank,
)
from castpoi.methods.outline import STRONGEST, Family, TableOutline
from castpoi.reports import notes
from castpoi.reports.evidence import CityEvidence, Evidence
from castpoi.reports.table import NOTHING, Cell, Table, count, number

BOOTSTRAP_SEED: Final = 42
_NOISE_METRIC: Final = "MRR"


@dataclass(frozen=True, kw_only=True)
class Judged:
    """One test of a table, corrected with its family."""

    table: str
    city: str
    family: Family
    verdict: Verdict


@dataclass(frozen=True, kw_only=True)
class Verdicts:
    """All tests of a report."""

    all: list[Judged]

    def against_row(self, table: TableOutline, city: str, row: str, metric: str) -> Verdict | None:
        """The test of the full model against a variant; of several the least certain."""
        found = self._of(table.name, city, metric, is_strongest=False) if table.is_ablation else []
        verdicts = (each.verdict for each in found if each.verdict.test.against == row)
        return max(verdicts, key=lambda verdict: verdict.p or 1.0, default=None)

    def against_strongest(self, table: str, city: str, row: str, metric: str) -> Verdict | None:
        """The test of a row of ours against the strongest baseline of a column."""
        found = self._of(table, city, metric, is_strongest=True)
        return next((each.verdict for each in found if each.family.row == row), None)

    def _of(self, table: str, city: str, metric: str, *, is_strongest: bool) -> list[Judged]:
        return [
            each
            for each in self.all
            if (each.table, each.city, each.verdict.test.metric) == (table, city, metric)
            and (each.family.against == STRONGEST) == is_strongest
        ]


def judge_all(evidence: Evidence, *, draws: int = DRAWS, progress: Progress = SILENCE) -> Verdicts:
    """Make every test that the results allow, and correct each family."""
    planned = [
        (table, family, city, against, metrics)
        for city in evidence.cities  # first, since the tests of a city share their samples
        for table in (*evidence.tables, *evidence.time_tables)
        if city in evidence.cities_for(table)
        for family in table.families
        if family.row in city.contenders
        for against, metrics in _opponents(table, family, city).items()
    ]
    families: dict[tuple[str, Family, str], list[tuple[CityEvidence, PairedTest]]] = {}
    with progress.task("tests", total=len(planned)) as task:
        for table, family, city, against, metrics in planned:
            name = f"{table.title}, {family.name} of {table.label(family.row)}"
            ours, theirs = city.contenders[family.row], city.contenders[against]
            for test in paired_tests(ours, theirs, metrics, seed=BOOTSTRAP_SEED, draws=draws):
                cell = f", {city.name}, {test.metric}" if family.together == "cell" else ""
                families.setdefault((table.name, family, name + cell), []).append((city, test))
            task.advance()
    return Verdicts(
        all=[
            Judged(table=table, city=city.name, family=family, verdict=verdict)
            for (table, family, name), tests in families.items()
            for (city, _), verdict in zip(
                tests, judge([test for _, test in tests], family=name), strict=True
            )
        ]
    )


def _opponents(table: TableOutline, family: Family, city: CityEvidence) -> dict[str, list[str]]:
    """The rows that a row is tested against, each with the metrics."""
    if family.against != STRONGEST:
        others = (name for name in family.against if name in city.contenders)
        return {name: list(family.metrics) for name in others if name != family.row}
    found: dict[str, list[str]] = {}
    for metric in family.metrics:
        strongest = city.strongest_of(table.rows, metric)
        if strongest is not None:
            found.setdefault(strongest.name, []).append(metric)
    return found


def significance_table(evidence: Evidence, verdicts: Verdicts) -> Table | None:
    """Every test with its p-values, interval and effect; None without tests."""
    if not verdicts.all:
        return None
    outlines = {table.name: table for table in (*evidence.tables, *evidence.time_tables)}
    groups: dict[str, list[dict[str, Cell]]] = {}
    for judged in verdicts.all:
        outline = outlines[judged.table]
        tested = outline.label(judged.verdict.test.contender)
        heading = f"{outline.title}, {judged.city}: {tested}"
        groups.setdefault(heading, []).append(_line(outline, judged.verdict))
    return Table.of_lines(
        groups,
        name="significance",
        title="Tests",
        caption=notes.TESTS,
        footnotes=[_summary(verdicts), *_noise_words(evidence)],
        words=2,
    )


def _summary(verdicts: Verdicts) -> str:
    draws = len(verdicts.all[0].verdict.test.users.samples)
    alone = sum(each.verdict.p is None for each in verdicts.all)
    return (
        f"The bootstraps have {draws:,} samples and seed {BOOTSTRAP_SEED}. {alone} of "
        f"{len(verdicts.all)} tests have no verdict, because a side has one seed."
    )


def _noise_words(evidence: Evidence) -> list[str]:
    """How often two seeds of one row differ significantly."""
    contenders = [own for city in evidence.cities for own in city.contenders.values()]
    p = [p for each in contenders if not each.is_counted for p in p_of_pairs(each)]
    differing = sum(each < ALPHA for each in p)
    if not p:
        return []
    return [
        f"Two seeds of one row differ with p < {ALPHA} in {_NOISE_METRIC} (Wilcoxon, uncorrected) "
        f"in {differing} of {len(p)} pairs."
    ]


def p_of_pairs(contender: Contender) -> list[float]:
    """The p-value of every pair of seeds of one contender, uncorrected."""
    values = per_target(_NOISE_METRIC, ranks_side_by_side([contender])[contender.name])  # [S, N]
    return [signed_rank(one - other).p for one, other in combinations(values, 2)]


def _line(outline: TableOutline, verdict: Verdict) -> dict[str, Cell]:
    test, ranked = verdict.test, verdict.test.wilcoxon
    against = outline.label(test.against)
    if outline.is_ablation:
        against = without_name(against, outline.label(test.contender))
    low, high = (100 * end for end in verdict.interval)
    alone = [100 * end for end in test.most_careful.interval()]
    outcomes = {"better": ranked.wins, "equal": ranked.ties, "worse": ranked.losses}
    seeds = test.users_and_seeds
    return {
        "Metric": Cell(test.metric),
        "Against": Cell(against),
        "Seeds": Cell(seeds_of(test), order=max(len(test.seeds), len(test.against_seeds))),
        "Points": lead_cell(verdict, test.users.mean),
        "Interval": Cell(
            f"{low:+.2f} to {high:+.2f}",
            order=low,
            parts={"low": low, "high": high, "low alone": alone[0], "high alone": alone[1]},
            note=f"of this test alone {alone[0]:+.2f} to {alone[1]:+.2f}",
        ),
        "p Wilcoxon": _p(verdict.wilcoxon_p, ranked.p, verdict),
        "p users": _p(verdict.users_p, test.users.p, verdict),
        "p users, seeds": NOTHING
        if verdict.seeds_p is None or seeds is None
        else _p(verdict.seeds_p, seeds.p, verdict),
        "Holm over": count(verdict.family_size),
        "Effect": number(ranked.rank_biserial),
        "Better / equal / worse": Cell(
            " / ".join(map(str, outcomes.values())),
            order=ranked.wins - ranked.losses,
            parts=outcomes,
        ),
    }


def lead_cell(verdict: Verdict, lead: float, *, paper: str = "", note: str = "") -> Cell:
    """A lead in points; with stars if it is significant, faint if a side has one seed."""
    points = 100 * lead
    return Cell(
        f"{points:+.2f}",
        points,
        stars=verdict.stars,
        is_faint=verdict.p is None,
        paper=paper,
        note=note,
    )


def _p(corrected: float, p: float, verdict: Verdict) -> Cell:
    before = f"{notes.p_value(p)} before the correction"
    note = f"{before}; family of {verdict.family_size}: {verdict.family}"
    return Cell(notes.p_value(corrected), corrected, note=note, parts={"uncorrected": p})


def seeds_of(test: PairedTest) -> str:
    """Number of seeds on each side of a test; a dash for a counting method."""
    return " / ".join(str(len(seeds) or "–") for seeds in (test.seeds, test.against_seeds))


def without_name(label: str, full: str) -> str:
    """The label of a variant without that of the full model."""
    return label.removeprefix(full).lstrip(", ") or label
