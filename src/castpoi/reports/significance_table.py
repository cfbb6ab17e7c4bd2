"""The table of tests: both p-values, the interval, the effect, and where the tests disagree."""

from castpoi.evaluation.significance import Verdict
from castpoi.methods.outline import TableOutline
from castpoi.reports.evidence import Evidence
from castpoi.reports.metric_table import p_words, seed_words
from castpoi.reports.outline import WHAT_TESTS_TELL, without_name
from castpoi.reports.seed_noise import seed_noise
from castpoi.reports.table import DAGGER, Cell, Group, Table, count, number, word
from castpoi.reports.verdicts import BOOTSTRAP_SEED, Judged, Verdicts

_COLUMNS = (
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
)


def significance_table(evidence: Evidence, verdicts: Verdicts) -> Table | None:
    """Every test with its verdict; None where nothing could be tested."""
    if not verdicts.all:
        return None
    outlines = {table.name: table for table in evidence.tables}
    groups: dict[str, list[list[Cell]]] = {}
    for judged in verdicts.all:
        outline = outlines[judged.table]
        tested = outline.label(judged.verdict.test.contender)
        heading = f"{outline.title}, {judged.city}: {tested}"
        groups.setdefault(heading, []).append(_line(outline, judged))
    draws = verdicts.all[0].verdict.test.bootstrap.draws
    return Table(
        name="significance",
        title="Tests",
        caption=(
            "The row of a heading against others. Seeds: how many went in on each side, equally "
            "many of both; a method that only counts has none. Points: difference of the two means "
            "in points of percent, over targets, each averaged over those seeds. Interval: paired "
            f"bootstrap, {draws:,} draws, seed {BOOTSTRAP_SEED}. "
            "Both p are two-sided and Holm-corrected over as many tests as stand beside them. "
            "Effect: matched-pairs rank-biserial correlation, -1 to 1; it counts ranks and not "
            "sizes. Then the number of targets on which the row is better, equal and worse. "
            f"{_disagreements(verdicts)} {WHAT_TESTS_TELL} {seed_noise(evidence).words}"
        ).strip(),
        columns=_COLUMNS,
        groups=[Group(heading=heading, rows=lines) for heading, lines in groups.items()],
        words=2,
    )


def _disagreements(verdicts: Verdicts) -> str:
    """How often the two tests disagree, and what that means."""
    disputed = sum(each.verdict.tests_disagree for each in verdicts.all)
    if not disputed:
        return f"The two tests agree in all {len(verdicts.all)} cases."
    return (
        f"In {disputed} of {len(verdicts.all)} cases the tests disagree ({DAGGER}): one rejects at "
        "0.05 and the other does not, or they favour different sides. Wilcoxon asks about the "
        "ranks of the differences, the bootstrap about their mean."
    )


def _line(outline: TableOutline, judged: Judged) -> list[Cell]:
    verdict, test = judged.verdict, judged.verdict.test
    against = outline.label(test.against)
    if outline.is_ablation:
        against = without_name(against, outline.label(test.contender))
    drawn, ranked = test.bootstrap, test.wilcoxon
    return [
        word(test.metric),
        word(against),
        word(seed_words(test), order=max(len(test.seeds), len(test.against_seeds))),
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
        word("disagree" if verdict.tests_disagree else "agree"),
    ]


def _p(corrected: float, p: float, verdict: Verdict) -> Cell:
    note = f"{p_words(p)} before the correction; family of {verdict.family_size}: {verdict.family}"
    return Cell(text=p_words(corrected), value=corrected, note=note, parts={"uncorrected": p})
