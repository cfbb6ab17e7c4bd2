"""The main table and the ablation: metrics of every row, in percent, with stars and the paper.

Best of a column in bold; the strongest baseline underlined, and under the rows by what part ours is
above it. Stars stand where a Holm-corrected Wilcoxon test tells two rows apart: on the improvement,
and on every variant that the full model is tested against.
"""

from collections.abc import Collection, Sequence
from statistics import stdev

from castpoi.evaluation.significance import PairedTest, Verdict
from castpoi.methods.outline import ABLATION, ORACLE, OURS, STRONGEST, Row, TableOutline
from castpoi.reports.evidence import (
    CityEvidence,
    Evidence,
    lacks_rivals,
    mean_of,
    rivals_on,
    strongest_rival,
)
from castpoi.reports.outline import (
    HEADLINE,
    IS_NO_METHOD,
    LEAVES_SEEDS_OUT,
    PAPERS_FAMILIES,
    PAPERS_METHOD,
    PAPERS_VARIANTS,
    STANDS_APART,
    WHAT_TESTS_TELL,
    letter_words,
)
from castpoi.reports.paper_values import (
    PaperCity,
    paper_city,
    paper_improvement,
    paper_value,
)
from castpoi.reports.table import DAGGER, NOTHING, Cell, Group, Table, count, word
from castpoi.reports.verdicts import Verdicts


def metric_table(outline: TableOutline, evidence: Evidence, verdicts: Verdicts) -> Table:
    """The table of an outline, one group a city; rows without a result are left out."""
    metrics = metrics_of(outline)
    groups = [_group(outline, city, metrics, verdicts) for city in shown_in(outline, evidence)]
    return Table(
        name=outline.name,
        title=outline.title,
        caption=_caption(outline, evidence, groups, verdicts),
        columns=["Method", "Seeds", *metrics],
        groups=groups,
    )


def shown_in(outline: TableOutline, evidence: Evidence) -> list[CityEvidence]:
    """The cities that have a row of the table.

    Ours alone is shown in the first of its tables, and in an ablation only if no city has more;
    copies of an oracle's models only beside the oracle.
    """
    some = [city for city in evidence.cities if _roles_on(outline, city)]
    if _has_judge(outline):
        return [city for city in some if ORACLE in _roles_on(outline, city)]
    shown = [
        city
        for city in some
        if _roles_on(outline, city) != {OURS}
        or (not outline.is_ablation and outline == _first_on(city, evidence))
    ]
    return shown or some


def _roles_on(outline: TableOutline, city: CityEvidence) -> set[str]:
    return {row.role for row in outline.rows if row.name in city.contenders}


def _first_on(city: CityEvidence, evidence: Evidence) -> TableOutline:
    return next(table for table in evidence.tables if _roles_on(table, city))


def metrics_of(outline: TableOutline) -> Sequence[str]:
    """The columns of a table: what its families test, or the paper's five."""
    tested = dict.fromkeys(metric for family in outline.families for metric in family.metrics)
    return list(tested) or HEADLINE


def _group(
    outline: TableOutline, city: CityEvidence, metrics: Sequence[str], verdicts: Verdicts
) -> Group:
    present = [row for row in outline.rows if row.name in city.contenders]
    paper = paper_city(city.name, city.targets)
    rows = [
        [
            Cell(text=row.label, note=_folders(city, row), is_ours=row.role == OURS),
            count(len(city.of(row.name)) if row.is_learned else None),
            *(_cell(outline, city, row, metric, verdicts, paper) for metric in metrics),
        ]
        for row in present
    ]
    lines = {
        row.label: [_improvement(outline, city, row, metric, verdicts, paper) for metric in metrics]
        for row in present
        if row.role == OURS
    }
    told = {label: line for label, line in lines.items() if line != [NOTHING] * len(metrics)}
    foot = [
        [word("Improvement" if len(told) == 1 else f"Improvement of {label}"), word(""), *line]
        for label, line in told.items()
    ]
    return Group(heading=city.name, rows=rows, foot=foot)


def _cell(
    outline: TableOutline,
    city: CityEvidence,
    row: Row,
    metric: str,
    verdicts: Verdicts,
    paper: PaperCity | None,
) -> Cell:
    contender = city.contenders[row.name]
    mean = mean_of(contender, metric)
    values = [100 * (result.metrics[metric] or 0.0) for result in contender.results]
    verdict = verdicts.against_row(outline.name, city.name, row.name, metric)
    reported = paper_value(outline, paper, row.name, metric)
    rivals = [each.name for each in outline.rows if each.name in city.contenders]
    highest = max(mean_of(city.contenders[name], metric) for name in rivals)
    return Cell(
        text=f"{100 * mean:.2f}",
        value=100 * mean,
        std=stdev(values) if row.is_learned and len(values) > 1 else None,
        stars="" if verdict is None else verdict.stars,
        is_disputed=verdict is not None and verdict.tests_disagree,
        paper="" if reported is None else reported.words,
        is_best=mean == highest and len(rivals) > 1 and not _has_judge(outline),
        is_strongest=strongest_rival(outline, city, metric) == row and _has_ours(outline),
        note=_folders(city, row) + ("" if verdict is None else f"\n{verdict_words(verdict)}"),
    )


def _improvement(
    outline: TableOutline,
    city: CityEvidence,
    row: Row,
    metric: str,
    verdicts: Verdicts,
    paper: PaperCity | None,
) -> Cell:
    verdict = verdicts.against_strongest(outline.name, city.name, row.name, metric)
    if verdict is None:
        return NOTHING
    # as the rows above have them: over all seeds, also those that the test leaves out
    ours, theirs = (
        mean_of(city.contenders[name], metric) for name in (row.name, verdict.test.against)
    )
    if not theirs:
        return NOTHING
    part = ours / theirs - 1
    reported = paper_improvement(outline, paper, metric) if row.method == PAPERS_METHOD else None
    return Cell(
        text=f"{100 * part:+.2f} %",
        value=100 * part,
        stars=verdict.stars,
        is_disputed=verdict.tests_disagree,
        paper="" if reported is None else f"{100 * reported:+.2f} %",
        note=f"against {outline.label(verdict.test.against)}\n{verdict_words(verdict)}",
    )


def verdict_words(verdict: Verdict) -> str:
    """A verdict in one line."""
    test = verdict.test
    return (
        f"p = {p_words(verdict.wilcoxon_p)} (Wilcoxon) and {p_words(verdict.bootstrap_p)} "
        f"(bootstrap), Holm over {verdict.family_size}; {test.wilcoxon.wins} better, "
        f"{test.wilcoxon.ties} equal, {test.wilcoxon.losses} worse; seeds {seed_words(test)}"
    )


def seed_words(test: PairedTest) -> str:
    """How many seeds went into a test on each side; a dash where a method only counts."""
    return " / ".join(str(len(seeds) or "–") for seeds in (test.seeds, test.against_seeds))


def p_words(p: float) -> str:
    """A p-value as people write it."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _has_ours(outline: TableOutline) -> bool:
    return any(row.role == OURS for row in outline.rows)


def _has_judge(outline: TableOutline) -> bool:
    return any(row.role == ORACLE for row in outline.rows)


def _folders(city: CityEvidence, row: Row) -> str:
    return "\n".join(str(finding.folder) for finding in city.of(row.name))


def _caption(
    outline: TableOutline, evidence: Evidence, groups: Sequence[Group], verdicts: Verdicts
) -> str:
    cells = [cell for group in groups for line in group for cell in line]
    words = [
        "In percent, the higher the better; every target ranked among all places. The protocol "
        "tells what HR, NDCG and MRR are."
    ]
    if outline.known_time:
        words.append(STANDS_APART)
    if _has_judge(outline):
        words.append(IS_NO_METHOD)
    words += letter_words([row for row in outline.rows if row.role == OURS])
    if any(cell.std is not None for cell in cells):
        words.append("Mean ± sample deviation over seeds.")
    if any(cell.is_best for cell in cells):
        words.append("Best of a column in bold.")
    if any(cell.is_strongest for cell in cells):
        words.append("The strongest baseline is underlined; the improvement is relative to it.")
        words += _stronger_words(outline, evidence)
        words += _lacking_words(outline, evidence)
    words += _star_words(outline, evidence, verdicts)
    if any(cell.is_disputed for cell in cells):
        words.append(f"{DAGGER}: the paired bootstrap does not agree with Wilcoxon; see Tests.")
    if any(cell.paper for cell in cells):
        words.append("Beside a value: the paper's own, a mean of three seeds.")
        if outline.is_ablation:
            words.append("Its ablation has other values of its model than its main table.")
    return " ".join(words)


def _stronger_words(outline: TableOutline, evidence: Evidence) -> list[str]:
    """On which cities another table has a stronger baseline than this one, and by what."""
    words = []
    for city in shown_in(outline, evidence):
        stronger: dict[str, list[str]] = {}
        for metric in metrics_of(outline):
            own = strongest_rival(outline, city, metric)
            best = evidence.strongest_rival(city, metric)
            if own is None or best is None:
                continue
            means = [mean_of(city.contenders[row.name], metric) for row in (own, best)]
            if means[0] < means[1]:
                stronger.setdefault(best.label, []).append(metric)
        words += [
            f"On {city.name} {label} of another table is stronger by {', '.join(metrics)}."
            for label, metrics in stronger.items()
        ]
    return words


def _lacking_words(outline: TableOutline, evidence: Evidence) -> list[str]:
    """On which cities the strongest baseline was sought among fewer than on others."""
    lacking = {
        city.name: sum(row.is_learned for row in rivals)
        for city in shown_in(outline, evidence)
        if (rivals := rivals_on(outline, city)) and lacks_rivals(outline, city)
    }
    if not lacking:
        return []
    told = ", ".join(f"{name} ({number or 'none'} learned)" for name, number in lacking.items())
    return [f"Not all baselines were run everywhere; it is the strongest of those run on {told}."]


def _star_words(outline: TableOutline, evidence: Evidence, verdicts: Verdicts) -> list[str]:
    """What stars stand for, and over how many tests p was corrected."""
    judged = [each for each in verdicts.all if each.table == outline.name]
    if not judged:
        return []
    sizes = " or ".join(map(str, sorted({each.verdict.family_size for each in judged})))
    tests = "test" if sizes == "1" else "tests"
    stand_for = []
    if any(each.is_against_strongest for each in judged):
        stand_for.append("on an improvement that ours differs from the strongest baseline")
    named = {each.family.row for each in judged if not each.is_against_strongest}
    if named:
        labels = " and from ".join(outline.label(name) for name in sorted(named))
        stand_for.append(f"on a row that it differs from {labels}")
    words = [
        f"Stars say {', '.join(stand_for)} (paired two-sided Wilcoxon test, equally many seeds of "
        f"each side, Holm-corrected over {sizes} {tests}: * p < 0.05, ** p < 0.01, *** p < 0.001)."
    ]
    words += papers_family_words(outline, {each.verdict.family_size for each in judged})
    words += left_out_words(outline, evidence, verdicts)
    return [*words, *_one_seed_words([each.verdict.test for each in judged])]


def left_out_words(outline: TableOutline, evidence: Evidence, verdicts: Verdicts) -> list[str]:
    """That a test may know fewer seeds than the means beside its stars, where one does."""
    cities = {city.name: city.contenders for city in evidence.cities}
    tests = [(each.city, each.verdict.test) for each in verdicts.all if each.table == outline.name]
    leaves_out = any(
        cities[city][name].seeds != seeds
        for city, test in tests
        for name, seeds in ((test.contender, test.seeds), (test.against, test.against_seeds))
    )
    return [LEAVES_SEEDS_OUT] if leaves_out else []


def papers_family_words(outline: TableOutline, sizes: Collection[int]) -> list[str]:
    """How many tests the paper corrects together, where it has the table and another number."""
    ours = {row.name for row in outline.rows if row.method == PAPERS_METHOD}
    families = [family for family in outline.families if family.row in ours]
    words = []
    if any(family.against == STRONGEST for family in families):
        words.append((PAPERS_FAMILIES[STRONGEST], "five metrics on three cities"))
    if any(set(family.against) & set(PAPERS_VARIANTS) for family in families):
        words.append((PAPERS_FAMILIES[ABLATION], "one a variant, for every city and metric"))
    return [
        f"The paper corrects over {size} tests: {why}."
        for size, why in words
        if {size} != set(sizes)
    ]


def _one_seed_words(tests: Sequence[PairedTest]) -> list[str]:
    """A warning where tests rest on one seed of a learned method."""
    alone = sum(1 in (len(test.seeds), len(test.against_seeds)) for test in tests)
    if not alone:
        return []
    return [f"{alone} of {len(tests)} tests rest on one seed a side. {WHAT_TESTS_TELL}"]
