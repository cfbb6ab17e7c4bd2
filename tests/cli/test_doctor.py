"""`castpoi doctor`: one table for a bug report."""

from importlib import metadata
from pathlib import Path

import polars as pl
import pytest

from tests.conftest import CommandLine


def test_the_doctor_reports_versions_and_a_missing_library(
    castpoi: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = metadata.version

    def without_uvicorn(name: str) -> str:
        if name == "uvicorn":
            raise metadata.PackageNotFoundError
        return found(name)

    monkeypatch.setattr(metadata, "version", without_uvicorn)
    report = castpoi("doctor", "--json").json
    assert f"polars {pl.__version__}" in report["libraries"]
    assert "uvicorn MISSING" in report["extra serve"]
    assert int(report["threads"]) >= 1
    assert "store" not in report


def test_the_doctor_reports_a_store_that_cannot_be_opened(
    castpoi: CommandLine, tmp_path: Path
) -> None:
    report = castpoi("doctor", "--store", f"sqlite:///{tmp_path}/none.sqlite", "--json").json
    assert "there is no visit store" in report["store"]
    assert not (tmp_path / "none.sqlite").exists()
