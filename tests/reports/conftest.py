"""Reports that many tests look at and none changes."""

from pathlib import Path

import pytest

from castpoi.reports.evidence import Evidence, read_evidence
from castpoi.reports.report import Report, write_report
from castpoi.reports.significance import Verdicts, judge_all
from castpoi.reports.table import Table
from tests.reports.result_folders import write_suite


@pytest.fixture(scope="session")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a suite of one city, four rows and two seeds; one experiment failed."""
    root = tmp_path_factory.mktemp("suite") / "evidence"
    return write_suite(root, unfinished={"oldtown/caser/1": "failed: no memory"})


@pytest.fixture(scope="session")
def evidence(suite: Path) -> Evidence:
    return read_evidence(suite)


@pytest.fixture(scope="session")
def verdicts(evidence: Evidence) -> Verdicts:
    return judge_all(evidence, draws=4000)


@pytest.fixture(scope="session")
def report(suite: Path, tmp_path_factory: pytest.TempPathFactory) -> Report:
    out = tmp_path_factory.mktemp("report") / "report"
    return write_report(suite, out, draws=4000, command="castpoi report evidence")


@pytest.fixture(scope="session")
def page(report: Report) -> str:
    return (report.out / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def tables(report: Report) -> dict[str, Table]:
    return {table.name: table for table in report.tables}
