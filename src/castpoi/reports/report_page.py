"""The page of a report: tables to sort, figures, the protocol, and where every number comes from.

One file that asks the network for nothing: styles, script and figures stand in it, and the browser
is told to run that one script and no other.
"""

import base64
import hashlib
from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import Final

from castpoi import __version__
from castpoi.checkins.city import REVISIT_WINDOW
from castpoi.core.quantities import duration_words
from castpoi.evaluation.significance import Verdict
from castpoi.evaluation.strata import TOO_SMALL
from castpoi.methods.outline import ORACLE, OURS, Row
from castpoi.reports.evidence import CityEvidence, Evidence, lacks_rivals, mean_of, rivals_on
from castpoi.reports.html_table import html_table
from castpoi.reports.metric_table import p_words
from castpoi.reports.model_card import card_file
from castpoi.reports.outline import WHAT_TESTS_TELL
from castpoi.reports.report import Chapter, Report
from castpoi.reports.svg import Markup, element, joined
from castpoi.reports.table import Table

_HEADLINE: Final = "HR@10"
_ENDINGS: Final = ("md", "csv", "tex")
_QUESTION: Final = (
    "Where will a person go next? Visits were held back, and every method, told what came before "
    "them, ranked all places of the city: the higher the place that was visited, the better. In "
    "brackets the p-value against the strongest baseline that was run; from 0.05 on it may be "
    "chance."
)
_PROTOCOL: Final = (
    (
        "Targets",
        "Each city is cut once, and its fingerprint is checked by every run. The last check-in of "
        "a user is a test target, the one before it serves validation, the rest training; other "
        "splits are told in the city's manifest. Methods know all visits before the target "
        "but those that the split leaves out.",
    ),
    (
        "Ranking",
        "Every target is ranked among all places of its city, none left out and none drawn. Ties "
        "share the mid-rank: 1 + places scored higher + half of the places scored equal.",
    ),
    (
        "Metrics",
        "HR@k: share of targets ranked k or better. NDCG@k: mean of 1 / log2(1 + rank) where the "
        "rank is k or better. MRR: mean of 1 / rank. Learned methods: mean and sample deviation "
        "over seeds; methods that only count have no chance in them and one result.",
    ),
    (
        "Tests",
        "The metric of a target is averaged over equally many seeds of each side (those both have, "
        "then the lowest); a method that only counts has none and stands against all of the other. "
        "Results are joined by check-in id. Two-sided Wilcoxon signed-rank test, differences of "
        "zero left out, and a paired bootstrap; Holm's correction over a family. Stars follow "
        f"Wilcoxon. {WHAT_TESTS_TELL}",
    ),
    (
        "Pools",
        "What a target would score among few places drawn at random follows from its rank among "
        "all places (hypergeometric), so nothing is drawn. Half of the tied places count as "
        "better, and HR@k takes a half-rank as the next whole one: values of methods that only "
        "count, which tie most, are rough in small pools.",
    ),
    (
        "Strata",
        "Tail, torso and head are cut at the 60th and 80th percentile of the train counts of the "
        f"targets. A revisit is at a place among the {REVISIT_WINDOW} visits before. Ranges "
        f"include their lower end. Strata of fewer than {TOO_SMALL} targets are too small to tell.",
    ),
)


def report_page(report: Report, command: str = "") -> str:
    """One self-contained HTML document; `command` is the one that makes it again."""
    css = _read("page.css") + _read("report.css")
    script = _read("report.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    title = f"{_name(report)} · castpoi"
    head = element(
        "head",
        Markup('<meta charset="utf-8">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        element("title", title),
        element("style", Markup(css)),
    )
    sections = list(_sections(report, command))
    body = element(
        "body",
        element("main", _header(report), _cards(report), _contents(sections), *_bodies(sections)),
        element("footer", f"Made by castpoi {__version__}. No user is named on this page."),
        element("script", Markup(script)),
    )
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def _sections(report: Report, command: str) -> Iterator[tuple[str, list[Markup]]]:
    """Headings and what stands under them; sections that have nothing to say are left out."""
    for outline, table in zip(report.evidence.tables, report.metric_tables, strict=True):
        pictures = _pictures(report, outline.name) if outline.is_ablation else []
        yield table.title, [_whole_table(table, titled=False), *pictures]
    if report.paper is not None:
        yield report.paper.title, [_whole_table(report.paper, titled=False)]
    pools = [part for each in report.chapters for part in _pool(each)]
    if pools:
        yield "Pool size", pools
    yield "Strata", _strata(report)
    learned = _pictures(report, "learning", "biases", "reliability")
    if learned:
        yield "What was learned", learned
    beyond = [_whole_table(each.beyond) for each in report.chapters if each.beyond is not None]
    if beyond:
        yield "Beyond accuracy", beyond
    if report.significance is not None:
        yield "Tests", [_whole_table(report.significance, titled=False)]
    yield "Cities", [_whole_table(report.cities, titled=False)]
    yield "Methods", [_whole_table(report.methods, titled=False)]
    yield "Protocol", [_protocol()]
    yield "Sources", [_origin(report, command), _whole_table(report.sources), _commands(report)]


def _bodies(sections: Sequence[tuple[str, list[Markup]]]) -> Iterator[Markup]:
    for heading, parts in sections:
        inside = element("div", *parts, class_="stack")
        yield element("section", element("h2", heading), inside, id=_anchor(heading))


def _contents(sections: Sequence[tuple[str, list[Markup]]]) -> Markup:
    links = [element("a", heading, href=f"#{_anchor(heading)}") for heading, _ in sections]
    return element("nav", *links, aria_label="Contents")


def _header(report: Report) -> Markup:
    ledes = [element("p", *_lede(report, city), class_="lede") for city in report.evidence.cities]
    return element(
        "header",
        element("p", "The evidence", class_="eyebrow"),
        element("h1", _name(report)),
        element("p", _QUESTION, class_="lede"),
        *ledes,
    )


def _lede(report: Report, city: CityEvidence) -> Iterator[str]:
    """How our methods do on a city, the best of them first, beside the strongest baseline."""
    evidence = report.evidence
    ours = [row for row in evidence.rows_of(city) if row.role == OURS]
    rival = evidence.strongest_rival(city, _HEADLINE)
    ours.sort(key=lambda row: -mean_of(city.contenders[row.name], _HEADLINE))
    first, *others = ours or [rival or evidence.rows_of(city)[0]]
    yield f"{city.name}: "
    yield element("strong", f"{first.label} has {_share(city, first)}")
    yield f" of {city.targets:,} next places among its first ten"
    yield _p(report, city, first, rival)
    yield from (
        f", {row.label} {_share(city, row)}{_p(report, city, row, rival)}" for row in others
    )
    if city.known_time:
        yield "; it was told when the visit was, so it stands apart"
    if rival is not None and rival != first:
        yield f"; {rival.label}, {_strongest_words(evidence, city)}, has {_share(city, rival)}"
    yield "."


def _strongest_words(evidence: Evidence, city: CityEvidence) -> str:
    """What the strongest baseline is the strongest of."""
    table = evidence.main_table(city)
    if table is None or not lacks_rivals(table, city):
        return "the strongest baseline"
    is_learned = any(row.is_learned for row in rivals_on(table, city))
    return "the strongest of those run here" + ("" if is_learned else " (no learned one was)")


def _p(report: Report, city: CityEvidence, row: Row, rival: Row | None) -> str:
    """In brackets, the p-value of a row of ours against the strongest baseline."""
    verdict = None if rival is None else _against(report, city, row, rival)
    return "" if verdict is None else f" (p\u00a0{_equals(p_words(verdict.wilcoxon_p))})"


def _against(report: Report, city: CityEvidence, row: Row, rival: Row) -> Verdict | None:
    for table in report.evidence.tables:
        verdict = report.verdicts.against_strongest(table.name, city.name, row.name, _HEADLINE)
        if verdict is not None and verdict.test.against == rival.name:
            return verdict
    return None


def _share(city: CityEvidence, row: Row) -> str:
    return f"{100 * mean_of(city.contenders[row.name], _HEADLINE):.1f}\u00a0%"


def _cards(report: Report) -> Markup:
    evidence = report.evidence
    trainings = {each.training: each.training_seconds or 0.0 for each in evidence.findings}
    trained = sum(trainings.values())
    ranked = sum(finding.result.seconds for finding in evidence.findings)
    splits = evidence.splits
    cities = len({city.fingerprint for city in splits})
    cards = {
        "city" if cities == 1 else "cities": f"{cities:,}",
        "methods and variants": f"{sum(row.role != ORACLE for row in evidence.rows):,}",
        "results, one a seed": f"{len(evidence.findings):,}",
        "targets": f"{sum(city.targets for city in splits):,}",
        "paired tests": f"{len(report.verdicts.all):,}",
        "of them significant": f"{sum(e.verdict.is_significant for e in report.verdicts.all):,}",
        "of training": duration_words(trained) if trained else "–",
        "of ranking": duration_words(ranked),
    }
    shown = [
        element("div", element("dt", term), element("dd", number), class_="card")
        for term, number in cards.items()
    ]
    parts = [element("dl", *shown, class_="cards")]
    if report.missing:
        lines = element("ul", *(element("li", gap) for gap in report.missing))
        words = element("summary", f"What is missing ({len(report.missing)})")
        parts.append(element("details", words, lines, class_="sheet gaps"))
    return joined(parts)


def _pool(chapter: Chapter) -> Iterator[Markup]:
    """The figure of a city with its table beside it; either may be absent."""
    if chapter.pool is None:
        return
    if "pool" not in chapter.pictures:
        yield _whole_table(chapter.pool)
        return
    sides = (_figure(chapter, "pool"), _whole_table(chapter.pool))
    yield element("div", *(element("div", side, class_="stack") for side in sides), class_="pair")


def _strata(report: Report) -> list[Markup]:
    """The figures of all cities, then their tables, folded where a figure shows the gist."""
    parts = _pictures(report, "strata")
    for chapter in report.chapters:
        if "strata" in chapter.pictures:
            words = element("summary", f"{chapter.strata.title}, every method")
            parts.append(element("details", words, *_table_parts(chapter.strata), class_="sheet"))
        else:
            parts.append(_whole_table(chapter.strata))
    return parts


def _pictures(report: Report, *kinds: str) -> list[Markup]:
    """The figures of some kinds, each kind by itself, two in a line."""
    drawn = [
        [_figure(chapter, kind) for chapter in report.chapters if kind in chapter.pictures]
        for kind in kinds
    ]
    return [element("div", *figures, class_="gallery") for figures in drawn if figures]


def _figure(chapter: Chapter, kind: str) -> Markup:
    picture = chapter.pictures[kind]
    city = element("p", chapter.city.name, class_="eyebrow")
    caption = element(
        "figcaption", city, element("h3", picture.finding), element("p", picture.caption)
    )
    drawing = element(
        "div", Markup(picture.inline()), class_="picture", role="img", aria_label=picture.finding
    )
    links = element(
        "p",
        *(
            element("a", ending.upper(), href=f"figures/{picture.name}.{ending}")
            for ending in ("svg", "png")
        ),
        class_="files",
    )
    return element("figure", caption, drawing, links)


def _whole_table(table: Table, *, titled: bool = True) -> Markup:
    heading = [element("h3", table.title)] if titled else []
    return element("div", *heading, *_table_parts(table), class_="sheet")


def _table_parts(table: Table) -> list[Markup]:
    """The groups of a table, its caption and its files."""
    parts: list[Markup] = []
    for group in table.groups:
        parts += [element("p", group.heading, class_="eyebrow")] if group.heading else []
        parts.append(html_table(table, group))
    parts.append(element("p", table.caption))
    links = [element("a", end.upper(), href=f"tables/{table.name}.{end}") for end in _ENDINGS]
    parts.append(element("p", *links, class_="files"))
    return parts


def _protocol() -> Markup:
    terms = [element("div", element("dt", term), element("dd", words)) for term, words in _PROTOCOL]
    return element("div", element("dl", *terms, class_="protocol"), class_="sheet")


def _origin(report: Report, command: str) -> Markup:
    prints = [
        element("li", f"{city.name}: ", element("code", city.fingerprint))
        for city in report.evidence.splits
    ]
    cards = [
        element("a", row.label, href=f"cards/{card_file(row)}") for row in report.evidence.rows
    ]
    parts = [
        element("h3", "Fingerprints"),
        element("ul", *prints),
        element("h3", "Versions"),
        element("p", _versions(report.evidence)),
        element("h3", "Model cards"),
        element("p", *cards, class_="files"),
    ]
    if command:
        parts += [element("h3", "This page"), element("p", element("code", command))]
    return element("div", *parts, class_="sheet origin")


def _commands(report: Report) -> Markup:
    """The commands of all results, folded away."""
    commands = [line for each in report.evidence.findings for line in each.commands]
    words = element("summary", f"Commands ({len(commands)})")
    return element("details", words, element("pre", "\n".join(commands)), class_="sheet")


def _versions(evidence: Evidence) -> str:
    found: dict[str, set[str]] = {}
    for finding in evidence.findings:
        for name, version in finding.result.manifest.get("versions", {}).items():
            found.setdefault(str(name), set()).add(str(version))
    return "; ".join(f"{name} {', '.join(sorted(all_))}" for name, all_ in found.items()) or "–"


def _name(report: Report) -> str:
    splits = report.evidence.splits
    cities = len({city.fingerprint for city in splits})
    where = " and ".join(each.name for each in splits) if cities == 1 else f"{cities} cities"
    return f"Next places, {where}"


def _anchor(heading: str) -> str:
    return heading.lower().replace(" ", "-")


def _equals(p: str) -> str:
    return p.replace(" ", "\u00a0") if p.startswith("<") else f"=\u00a0{p}"


def _read(name: str) -> str:
    return files("castpoi.reports").joinpath(name).read_text(encoding="utf-8")
