"""A report about a folder of results: one page, tables and figures as files, and model cards.

REPORT/report.html        self-contained; needs no network
REPORT/tables/NAME.md     and .csv, .tex
REPORT/figures/NAME.svg   and .png
REPORT/cards/ROW.md       the model card of a row
REPORT/manifest.json      its results, command, versions and commit
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from castpoi import __version__
from castpoi.checkins.city import REVISIT_WINDOW
from castpoi.core.files import check_vacant, new_folder, write_json
from castpoi.core.progress import SILENCE, Progress
from castpoi.core.provenance import Stopwatch
from castpoi.core.quantities import duration_words
from castpoi.evaluation.pool import PoolCurve
from castpoi.evaluation.significance import DRAWS
from castpoi.evaluation.strata import TOO_SMALL, Stratum
from castpoi.methods.outline import ORACLE, OURS, Row, TableOutline
from castpoi.reports import analyses, inventory, notes
from castpoi.reports.analyses import METRIC, order_table, pairs
from castpoi.reports.card import card_file, model_card
from castpoi.reports.costs import cost_table
from castpoi.reports.evidence import CityEvidence, Evidence, read_evidence
from castpoi.reports.metrics import metric_table
from castpoi.reports.page import render, text_of
from castpoi.reports.reference import reference_table
from castpoi.reports.significance import Verdicts, judge_all, significance_table
from castpoi.reports.table import Table, comma_separated, latex, markdown

if TYPE_CHECKING:
    from castpoi.reports.style import Chart

NO_BREAK: Final = "\u00a0"  # a space that ends no line


@dataclass(frozen=True, kw_only=True)
class BuiltSection:
    """A section with its tables and charts."""

    title: str
    tables: list[Table]
    charts: "list[Chart]"
    folds: bool


@dataclass(frozen=True, kw_only=True)
class Report:
    """A report before it is written."""

    evidence: Evidence
    verdicts: Verdicts
    out: Path  # its folder, where its links start
    missing: list[str]
    sections: list[BuiltSection] = field(default_factory=list)

    @property
    def tables(self) -> list[Table]:
        """All tables."""
        return [table for section in self.sections for table in section.tables]

    @property
    def charts(self) -> list["Chart"]:
        """All charts."""
        return [chart for section in self.sections for chart in section.charts]

    @cached_property
    def strata(self) -> list[tuple[CityEvidence, list[Stratum]]]:
        """The strata of each city."""
        return [(city, analyses.strata_of(self.evidence, city)) for city in self.evidence.cities]

    @cached_property
    def pools(self) -> list[tuple[CityEvidence, PoolCurve]]:
        """The pool curve of each city."""
        return [(city, analyses.pool_of(self.evidence, city)) for city in self.evidence.cities]


@dataclass(frozen=True, kw_only=True)
class Section:
    """A section of the page; it is left out where it has neither tables nor charts."""

    title: str
    tables: Callable[[Report], Iterable[Table | None]] = lambda _: ()
    charts: Callable[[Report, Any], Iterable["Chart | None"]] = lambda *_: ()
    """From a report and the module of figures, which is imported if matplotlib is installed."""
    folds: bool = False  # whether its tables are folded below its charts


SECTIONS: Final = (
    Section(
        title="Order of methods",
        tables=lambda report: (
            order_table(report.evidence, *pair) for pair in pairs(report.evidence)
        ),
    ),
    Section(
        title="Compared with the paper",
        tables=lambda report: [reference_table(report.evidence, report.verdicts)],
    ),
    Section(
        title="Pool size",
        tables=lambda report: (analyses.pool_table(report.evidence, *one) for one in report.pools),
        charts=lambda report, figures: (
            figures.pool_lines(report.evidence, *one) for one in report.pools
        ),
        folds=True,
    ),
    Section(
        title="Strata",
        tables=lambda report: (
            analyses.strata_table(report.evidence, *one) for one in report.strata
        ),
        charts=lambda report, figures: (
            figures.strata_dots(report.evidence, *one) for one in report.strata
        ),
        folds=True,
    ),
    Section(
        title="What was learned",
        charts=lambda report, figures: (
            draw(report.evidence, city)
            for draw in (figures.learning_curves, figures.bias_bars, figures.reliability_lines)
            for city in report.evidence.cities
        ),
    ),
    Section(
        title="Beyond accuracy",
        tables=lambda report: (
            analyses.beyond_table(report.evidence, city) for city in report.evidence.cities
        ),
    ),
    Section(
        title="Costs",
        tables=lambda report: (
            cost_table(report.evidence, city) for city in report.evidence.cities
        ),
        charts=lambda report, figures: (
            figures.cost_dots(report.evidence, city) for city in report.evidence.cities
        ),
    ),
    Section(
        title="Tests", tables=lambda report: [significance_table(report.evidence, report.verdicts)]
    ),
    Section(title="Cities", tables=lambda report: [inventory.city_table(report.evidence)]),
    Section(title="Methods", tables=lambda report: [inventory.method_table(report.evidence)]),
    Section(
        title="Sources", tables=lambda report: [inventory.source_table(report.evidence, report.out)]
    ),
)
"""The sections of a report, after one for each table of its outline."""


def _section_of(outline: TableOutline) -> Section:
    """The section of a table of metrics; an ablation has a chart for each city."""
    return Section(
        title=outline.title,
        tables=lambda report: [metric_table(outline, report.evidence, report.verdicts)],
        charts=lambda report, figures: (
            figures.ablation_bars(outline, city)
            for city in report.evidence.cities_for(outline)
            if outline.is_ablation
        ),
    )


def make_report(
    evidence: Evidence, out: Path, *, draws: int = DRAWS, progress: Progress = SILENCE
) -> Report:
    """All tables and charts that the results allow; links start in `out`."""
    verdicts = judge_all(evidence, draws=draws, progress=progress)
    has_charts = find_spec("matplotlib") is not None
    figures = import_module("castpoi.reports.figures") if has_charts else None
    missing = inventory.what_is_missing(evidence, has_charts=has_charts)
    report = Report(evidence=evidence, verdicts=verdicts, out=out, missing=missing)
    planned = [*map(_section_of, evidence.tables), *map(_section_of, evidence.time_tables)]
    planned += SECTIONS
    with progress.task("sections", total=len(planned)) as task:
        for each in planned:
            tables = [table for table in each.tables(report) if table is not None]
            charts = [chart for chart in each.charts(report, figures) if chart] if figures else []
            if tables or charts:
                report.sections.append(
                    BuiltSection(title=each.title, tables=tables, charts=charts, folds=each.folds)
                )
            task.advance()
    return report


def write_report(
    folder: Path,
    out: Path,
    *,
    ours: Sequence[str] = (),
    overwrite: bool = False,
    draws: int = DRAWS,
    command: str = "",
    progress: Progress = SILENCE,
) -> Report:
    """Read the results in `folder` and write a report about them, or about `ours`, to `out`."""
    check_vacant(out, kind="report", overwrite=overwrite)
    work = Stopwatch()
    report = make_report(read_evidence(folder, ours=ours), out, draws=draws, progress=progress)
    writers = {"md": markdown, "csv": comma_separated, "tex": latex}
    with new_folder(out, kind="report", overwrite=overwrite) as staging:
        tables = {
            f"{table.name}.{ending}": write(table)
            for table in report.tables
            for ending, write in writers.items()
        }
        cards = {card_file(row): model_card(report.evidence, row) for row in report.evidence.rows}
        _write_texts(staging / "tables", tables)
        _write_texts(staging / "cards", cards)
        _write_charts(staging / "figures", report, progress)
        (staging / "report.html").write_text(report_page(report, command), encoding="utf-8")
        write_json(staging / "manifest.json", _manifest(report, command, work))
    return report


def _write_texts(folder: Path, texts: Mapping[str, str]) -> None:
    folder.mkdir()
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")


def _write_charts(folder: Path, report: Report, progress: Progress) -> None:
    folder.mkdir()
    with progress.task("figures", total=len(report.charts)) as task:
        for chart in report.charts:
            (folder / f"{chart.name}.svg").write_text(chart.svg(), encoding="utf-8")
            (folder / f"{chart.name}.png").write_bytes(chart.png())
            task.advance()


def _manifest(report: Report, command: str, work: Stopwatch) -> dict[str, Any]:
    evidence = report.evidence
    return {
        "kind": "report",
        "source": inventory.relative_path(evidence.folder, report.out),
        "command": command,
        "cities": {city.name: city.fingerprint for city in evidence.cities},
        "results": [inventory.relative_path(each.folder, report.out) for each in evidence.results],
        "missing": report.missing,
        **work.provenance(),
    }


@dataclass(frozen=True, kw_only=True)
class Headline:
    """The first line about a city: texts of methods with their HR@10 and p-value."""

    city: CityEvidence
    best: str  # of our methods, or of all methods without ours
    others: list[str]  # our other methods
    strongest: str  # the strongest baseline; empty if there is none
    is_behind: bool  # whether the strongest baseline is ahead of our methods


def report_page(report: Report, command: str = "") -> str:
    """One self-contained HTML document; `command` is the one that made it."""
    evidence = report.evidence
    cities = len({city.town for city in evidence.splits})
    names = " and ".join(each.name for each in evidence.splits)
    return render(
        "report.html.j2",
        css=text_of("page.css", "report.css"),
        js=text_of("report.js"),
        title=f"Next places, {names if cities == 1 else f'{cities} cities'}",
        headlines=[_headline(report, city) for city in evidence.cities],
        key_figures=_key_figures(report, cities),
        report=report,
        evidence=evidence,
        command=command,
        bibtex=_bibtex(evidence),
        library_versions=_versions(evidence),
        card_file=card_file,
        notes=notes,
        revisit_window=REVISIT_WINDOW,
        too_small=TOO_SMALL,
        version=__version__,
    )


def _headline(report: Report, city: CityEvidence) -> Headline:
    evidence = report.evidence
    ours = [row for row in evidence.rows_of(city) if row.role == OURS]
    ours.sort(key=lambda row: -city.mean(row.name, METRIC))
    strongest = evidence.strongest(city, METRIC)
    best, *others = ours or [strongest or evidence.rows_of(city)[0]]
    return Headline(
        city=city,
        best=_score(report, city, best, strongest),
        others=[_score(report, city, row, strongest) for row in others],
        strongest="" if strongest in (None, best) else _score(report, city, strongest, None),
        is_behind=strongest is not None
        and city.mean(strongest.name, METRIC) > city.mean(best.name, METRIC),
    )


def _score(report: Report, city: CityEvidence, row: Row, against: Row | None) -> str:
    """The label of a row and its HR@10, with the p-value of its test against a baseline."""
    words = f"{row.label} {100 * city.mean(row.name, METRIC):.1f}{NO_BREAK}%"
    for table in (*report.evidence.tables, *report.evidence.time_tables):
        verdict = report.verdicts.against_strongest(table.name, city.name, row.name, METRIC)
        if verdict and against and verdict.test.against == against.name:
            p = "not tested: one seed" if verdict.p is None else notes.p_equals(verdict.p)
            return f"{words} ({p.replace(' ', NO_BREAK)})"
    return words


def _key_figures(report: Report, cities: int) -> dict[str, str]:
    evidence, verdicts = report.evidence, report.verdicts.all
    trainings = {each.training: each.training_seconds or 0.0 for each in evidence.results}
    trained = sum(trainings.values())
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


def _bibtex(evidence: Evidence) -> str:
    """How to cite castpoi, with the commit of the newest result."""
    newest = max(evidence.results, key=lambda each: str(each.result.manifest.get("ended_utc")))
    commit = str(newest.result.manifest.get("commit") or "unknown")[:12]
    year = str(newest.result.manifest.get("ended_utc") or "")[:4]
    lines = {
        "title": "castpoi: next-place recommendation in Python",
        "version": __version__,
        "year": year,
        "note": f"commit {commit}",
    }
    fields = "".join(f"  {name} = {{{text}}},\n" for name, text in lines.items() if text)
    return f"@software{{castpoi,\n{fields}}}"


def _versions(evidence: Evidence) -> str:
    found: dict[str, set[str]] = {}
    for each in evidence.results:
        for name, version in each.result.manifest.get("versions", {}).items():
            found.setdefault(str(name), set()).add(str(version))
    return "; ".join(f"{name} {', '.join(sorted(all_))}" for name, all_ in found.items()) or "–"
