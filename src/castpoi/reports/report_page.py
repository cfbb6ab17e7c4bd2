"""The page of a report: its first lines, its key figures, and the values of its template."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from castpoi import __version__
from castpoi.checkins.city import REVISIT_WINDOW
from castpoi.core.quantities import duration_words
from castpoi.evaluation.strata import TOO_SMALL
from castpoi.methods.outline import ORACLE, OURS, Row
from castpoi.reports import notes
from castpoi.reports.card import card_file
from castpoi.reports.evidence import CityEvidence, Evidence
from castpoi.reports.page import render, text_of

if TYPE_CHECKING:
    from castpoi.reports.report import Report

_METRIC: Final = "HR@10"


@dataclass(frozen=True, kw_only=True)
class Score:
    """The HR@10 of one method in the first lines."""

    label: str
    share: str
    p: str = ""
    """Of the test against the strongest baseline."""


@dataclass(frozen=True, kw_only=True)
class Headline:
    """The first line about a city."""

    city: CityEvidence
    best: Score
    """The best of our methods, or of all methods without ours."""
    others: tuple[Score, ...]
    """Our other methods."""
    strongest: Score | None
    """The strongest baseline."""
    is_partial: bool
    """Whether baselines have no result on this city."""


def report_page(report: "Report", command: str = "") -> str:
    """One self-contained HTML document; `command` is the one that made it."""
    evidence = report.evidence
    return render(
        "report.html.j2",
        css=text_of("page.css", "report.css"),
        js=text_of("report.js"),
        title=_title(evidence),
        headlines=[_headline(report, city) for city in evidence.cities],
        key_figures=_key_figures(report),
        report=report,
        evidence=evidence,
        command=command,
        commands=[line for each in evidence.results for line in each.commands],
        library_versions=_versions(evidence),
        card_file=card_file,
        notes=notes,
        revisit_window=REVISIT_WINDOW,
        too_small=TOO_SMALL,
        version=__version__,
    )


def _title(evidence: Evidence) -> str:
    splits = evidence.splits
    cities = len({city.fingerprint for city in splits})
    where = " and ".join(each.name for each in splits) if cities == 1 else f"{cities} cities"
    return f"Next places, {where}"


def _headline(report: "Report", city: CityEvidence) -> Headline:
    evidence = report.evidence
    ours = [row for row in evidence.rows_of(city) if row.role == OURS]
    ours.sort(key=lambda row: -city.mean(row.name, _METRIC))
    strongest = evidence.strongest(city, _METRIC)
    first, *others = ours or [strongest or evidence.rows_of(city)[0]]
    return Headline(
        city=city,
        best=_score(report, city, first, strongest),
        others=tuple(_score(report, city, row, strongest) for row in others),
        strongest=None if strongest in (None, first) else _score(report, city, strongest, None),
        is_partial=evidence.lacks_baselines(city),
    )


def _score(report: "Report", city: CityEvidence, row: Row, against: Row | None) -> Score:
    share = f"{100 * city.mean(row.name, _METRIC):.1f}\u00a0%"
    p = None if against is None else _p_value(report, city, row, against)
    text = "" if p is None else notes.p_value(p)
    return Score(label=row.label, share=share, p=text if text[:1] in ("", "<") else f"= {text}")


def _p_value(report: "Report", city: CityEvidence, row: Row, against: Row) -> float | None:
    """The p-value of the test of a row of ours against a baseline, if there is one."""
    for table in report.evidence.tables:
        verdict = report.verdicts.against_strongest(table.name, city.name, row.name, _METRIC)
        if verdict is not None and verdict.test.against == against.name:
            return verdict.wilcoxon_p
    return None


def _key_figures(report: "Report") -> dict[str, str]:
    evidence, verdicts = report.evidence, report.verdicts.all
    trainings = {each.training: each.training_seconds or 0.0 for each in evidence.results}
    trained = sum(trainings.values())
    cities = len({city.fingerprint for city in evidence.splits})
    return {
        "city" if cities == 1 else "cities": f"{cities:,}",
        "methods and variants": f"{sum(row.role != ORACLE for row in evidence.rows):,}",
        "results, one for each seed": f"{len(evidence.results):,}",
        "targets": f"{sum(city.targets for city in evidence.splits):,}",
        "paired tests": f"{len(verdicts):,}",
        "of them significant": f"{sum(each.verdict.is_significant for each in verdicts):,}",
        "of training": duration_words(trained) if trained else "–",
        "of ranking": duration_words(sum(each.result.seconds for each in evidence.results)),
    }


def _versions(evidence: Evidence) -> str:
    found: dict[str, set[str]] = {}
    for each in evidence.results:
        for name, version in each.result.manifest.get("versions", {}).items():
            found.setdefault(str(name), set()).add(str(version))
    return "; ".join(f"{name} {', '.join(sorted(all_))}" for name, all_ in found.items()) or "–"
