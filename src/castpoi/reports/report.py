"""A report about a folder of results: one page, tables and figures as files, and model cards.

REPORT/report.html        self-contained; needs no network
REPORT/tables/NAME.md     and .csv, .tex
REPORT/figures/NAME.svg   and .png
REPORT/cards/ROW.md       the model card of a row
REPORT/manifest.json      its results, command, versions and commit
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from castpoi.core.files import check_vacant, new_folder, write_json
from castpoi.core.progress import SILENCE, Progress
from castpoi.core.provenance import Stopwatch
from castpoi.evaluation.pool import PoolCurve
from castpoi.evaluation.significance import DRAWS
from castpoi.evaluation.strata import Stratum
from castpoi.methods.outline import TableOutline
from castpoi.reports.analyses import beyond_table, pool_of, pool_table, strata_of, strata_table
from castpoi.reports.card import card_file, model_card
from castpoi.reports.evidence import CityEvidence, Evidence, read_evidence
from castpoi.reports.inventory import (
    city_table,
    method_table,
    relative_path,
    source_table,
    what_is_missing,
)
from castpoi.reports.metrics import metric_table
from castpoi.reports.reference import reference_table
from castpoi.reports.report_page import report_page
from castpoi.reports.significance import Verdicts, judge_all, significance_table
from castpoi.reports.table import Table, comma_separated, latex, markdown

if TYPE_CHECKING:
    from castpoi.reports.style import Chart


@dataclass(frozen=True, kw_only=True)
class Study:
    """What the sections of a report are built from."""

    evidence: Evidence
    verdicts: Verdicts
    out: Path
    """The folder of the report, where its links start."""

    @cached_property
    def strata(self) -> list[tuple[CityEvidence, list[Stratum]]]:
        """The strata of each city."""
        return [(city, strata_of(self.evidence, city)) for city in self.evidence.cities]

    @cached_property
    def pools(self) -> list[tuple[CityEvidence, PoolCurve]]:
        """The pool curve of each city."""
        return [(city, pool_of(self.evidence, city)) for city in self.evidence.cities]


def _no_charts(_: Study) -> Iterable["Chart | None"]:
    return ()


@dataclass(frozen=True, kw_only=True)
class Section:
    """A section of the page; it is left out where it has neither tables nor charts."""

    title: str
    tables: Callable[[Study], Iterable[Table | None]]
    charts: Callable[[Study], Iterable["Chart | None"]] = _no_charts
    """Called only if matplotlib is installed."""
    folds: bool = False
    """Whether its tables are folded below its charts."""


def _pool_tables(study: Study) -> Iterable[Table | None]:
    return (pool_table(study.evidence, city, curve) for city, curve in study.pools)


def _pool_charts(study: Study) -> Iterable["Chart | None"]:
    from castpoi.reports.figures import pool_lines

    return (pool_lines(study.evidence, city, curve) for city, curve in study.pools)


def _strata_tables(study: Study) -> Iterable[Table | None]:
    return (strata_table(study.evidence, city, found) for city, found in study.strata)


def _strata_charts(study: Study) -> Iterable["Chart | None"]:
    from castpoi.reports.figures import strata_dots

    return (strata_dots(study.evidence, city, found) for city, found in study.strata)


def _learned_charts(study: Study) -> Iterable["Chart | None"]:
    from castpoi.reports.training_figures import bias_bars, learning_curves, reliability_lines

    draw_each = (learning_curves, bias_bars, reliability_lines)
    return (draw(study.evidence, city) for draw in draw_each for city in study.evidence.cities)


SECTIONS: Final = (
    Section(
        title="Compared with the paper",
        tables=lambda study: [reference_table(study.evidence, study.verdicts)],
    ),
    Section(title="Pool size", tables=_pool_tables, charts=_pool_charts, folds=True),
    Section(title="Strata", tables=_strata_tables, charts=_strata_charts, folds=True),
    Section(title="What was learned", tables=lambda _: (), charts=_learned_charts),
    Section(
        title="Beyond accuracy",
        tables=lambda study: (beyond_table(study.evidence, each) for each in study.evidence.cities),
    ),
    Section(
        title="Tests", tables=lambda study: [significance_table(study.evidence, study.verdicts)]
    ),
    Section(title="Cities", tables=lambda study: [city_table(study.evidence)]),
    Section(title="Methods", tables=lambda study: [method_table(study.evidence)]),
    Section(title="Sources", tables=lambda study: [source_table(study.evidence, study.out)]),
)
"""The sections of a report, after one for each table of its outline."""


def _section_of(outline: TableOutline) -> Section:
    """The section of a table of metrics; an ablation has a chart for each city."""

    def charts(study: Study) -> Iterable["Chart | None"]:
        from castpoi.reports.figures import ablation_bars

        return (ablation_bars(outline, city) for city in study.evidence.cities)

    return Section(
        title=outline.title,
        tables=lambda study: [metric_table(outline, study.evidence, study.verdicts)],
        charts=charts if outline.is_ablation else _no_charts,
    )


@dataclass(frozen=True, kw_only=True)
class BuiltSection:
    """A section with its tables and charts."""

    title: str
    tables: tuple[Table, ...]
    charts: "tuple[Chart, ...]"
    folds: bool


@dataclass(frozen=True, kw_only=True)
class Report:
    """A report before it is written."""

    evidence: Evidence
    out: Path
    verdicts: Verdicts
    sections: tuple[BuiltSection, ...]
    missing: tuple[str, ...]

    @property
    def tables(self) -> list[Table]:
        """All tables."""
        return [table for section in self.sections for table in section.tables]

    @property
    def charts(self) -> list["Chart"]:
        """All charts."""
        return [chart for section in self.sections for chart in section.charts]


def make_report(
    evidence: Evidence, out: Path, *, draws: int = DRAWS, progress: Progress = SILENCE
) -> Report:
    """All tables and charts that the results allow; links start in `out`."""
    verdicts = judge_all(evidence, draws=draws, progress=progress)
    study = Study(evidence=evidence, verdicts=verdicts, out=out)
    has_charts = find_spec("matplotlib") is not None
    sections = []
    planned = [*map(_section_of, evidence.tables), *SECTIONS]
    with progress.task("sections", total=len(planned)) as task:
        for section in planned:
            tables = (table for table in section.tables(study) if table is not None)
            charts = (chart for chart in section.charts(study) if chart) if has_charts else ()
            built = BuiltSection(
                title=section.title, tables=(*tables,), charts=(*charts,), folds=section.folds
            )
            sections += [built] if built.tables or built.charts else []
            task.advance()
    missing = what_is_missing(evidence, has_charts=has_charts)
    return Report(
        evidence=evidence,
        out=out,
        verdicts=verdicts,
        sections=tuple(sections),
        missing=tuple(missing),
    )


def write_report(
    folder: Path,
    out: Path,
    *,
    overwrite: bool = False,
    draws: int = DRAWS,
    command: str = "",
    progress: Progress = SILENCE,
) -> Report:
    """Read the results in `folder` and write a report about them to `out`."""
    check_vacant(out, kind="report", overwrite=overwrite)
    work = Stopwatch()
    report = make_report(read_evidence(folder), out, draws=draws, progress=progress)
    with new_folder(out, kind="report", overwrite=overwrite) as staging:
        _write_texts(staging / "tables", _table_files(report))
        cards = {card_file(row): model_card(report.evidence, row) for row in report.evidence.rows}
        _write_texts(staging / "cards", cards)
        _write_charts(staging / "figures", report, progress)
        (staging / "report.html").write_text(report_page(report, command), encoding="utf-8")
        write_json(staging / "manifest.json", _manifest(report, command, work))
    return report


def _table_files(report: Report) -> dict[str, str]:
    writers = {"md": markdown, "csv": comma_separated, "tex": latex}
    return {
        f"{table.name}.{ending}": write(table)
        for table in report.tables
        for ending, write in writers.items()
    }


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
        "source": relative_path(evidence.folder, report.out),
        "command": command,
        "cities": {city.name: city.fingerprint for city in evidence.cities},
        "results": [relative_path(each.folder, report.out) for each in evidence.results],
        "missing": list(report.missing),
        **work.provenance(),
    }
