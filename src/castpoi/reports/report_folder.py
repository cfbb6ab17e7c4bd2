"""A report on disk: one page, the tables and figures as files, and a card for every method.

REPORT/report.html        self-contained; opens without a network
REPORT/tables/NAME.md     and .csv, .tex
REPORT/figures/NAME.svg   and .png
REPORT/cards/ROW.md       the model card of a row
REPORT/manifest.json      the results it was made from, command, versions, commit
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from castpoi.core.files import check_vacant, new_folder, write_json
from castpoi.core.progress import SILENCE, Progress
from castpoi.core.provenance import Stopwatch
from castpoi.evaluation.significance import DRAWS
from castpoi.reports.evidence import read_evidence
from castpoi.reports.model_card import card_file, model_card
from castpoi.reports.report import Report, make_report
from castpoi.reports.report_page import report_page
from castpoi.reports.source_table import way_to
from castpoi.reports.table_files import comma_separated, latex, markdown


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
        _write_pictures(staging / "figures", report, progress)
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


def _write_pictures(folder: Path, report: Report, progress: Progress) -> None:
    folder.mkdir()
    with progress.task("figures", total=len(report.pictures)) as task:
        for picture in report.pictures:
            (folder / f"{picture.name}.svg").write_text(picture.svg(), encoding="utf-8")
            (folder / f"{picture.name}.png").write_bytes(picture.png())
            task.advance()


def _manifest(report: Report, command: str, work: Stopwatch) -> dict[str, Any]:
    evidence = report.evidence
    return {
        "kind": "report",
        "source": way_to(evidence.folder, report.out),
        "command": command,
        "cities": {city.name: city.fingerprint for city in evidence.cities},
        "results": [way_to(finding.folder, report.out) for finding in evidence.findings],
        "missing": list(report.missing),
        **work.provenance(),
    }
