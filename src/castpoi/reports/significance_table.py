"""The table of tests: both p-values, the interval, the effect, and where the tests disagree."""

from castpoi.reports.evidence import Evidence
from castpoi.reports.metric_table import p_words
from castpoi.reports.table import Cell, Group, Table, number, word
from castpoi.reports.verdicts import BOOTSTRAP_SEED, Judged, Verdicts

_COLUMNS = (
    "Metric",
    "Row",
    "Against",
    "Difference",
    "95 % interval",
    "p Wilcoxon",
    "p bootstrap",
    "Effect",
    "Better / equal / worse",
    "Tests",
)


def significance_table(evidence: Evidence, verdicts: Verdicts) -> Table | None:
    """Every test with its verdict; None where nothing could be tested."""
    if not verdicts.all:
        return None
    titles = {table.name: table.title for table in evidence.tables}
    groups: dict[str, list[list[Cell]]] = {}
    for judged in verdicts.all:
        heading = f"{titles[judged.table]}, {judged.city}"
        groups.setdefault(heading, []).append(_line(evidence, judged))
    draws = verdicts.all[0].verdict.test.bootstrap.draws
    return Table(
        name="significance",
        title="Tests",
        caption=(
            "Differences and intervals in points of percent, over targets, each averaged over its "
            f"seeds. Interval: paired bootstrap, {draws:,} draws, seed {BOOTSTRAP_SEED}. Both p "
            "are two-sided and Holm-corrected over their family. Effect: matched-pairs "
            "rank-biserial correlation, -1 to 1. The last column says where one test rejects at "
            "0.05 and the other does not, or they favour different sides."
        ),
        columns=_COLUMNS,
        groups=[Group(heading=heading, rows=lines) for heading, lines in groups.items()],
        words=3,
    )


def _line(evidence: Evidence, judged: Judged) -> list[Cell]:
    verdict, test = judged.verdict, judged.verdict.test
    outline = next(table for table in evidence.tables if table.name == judged.table)
    drawn, ranked = test.bootstrap, test.wilcoxon
    return [
        word(test.metric),
        word(outline.label(test.contender)),
        word(outline.label(test.against)),
        Cell(text=f"{100 * drawn.mean:+.2f}", value=100 * drawn.mean, stars=verdict.stars),
        word(f"{100 * drawn.low:+.2f} to {100 * drawn.high:+.2f}"),
        _p(verdict.wilcoxon_p, f"family of {verdict.family_size}: {verdict.family}"),
        _p(verdict.bootstrap_p, f"family of {verdict.family_size}: {verdict.family}"),
        number(ranked.rank_biserial),
        word(f"{ranked.wins} / {ranked.ties} / {ranked.losses}"),
        word("disagree" if verdict.tests_disagree else "agree"),
    ]


def _p(p: float, note: str) -> Cell:
    return Cell(text=p_words(p), value=p, note=note)
