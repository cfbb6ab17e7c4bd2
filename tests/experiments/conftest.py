"""Shared by the tests of suites: a village on disk, and a worker that takes no time."""

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path

import polars as pl
import pytest

from castpoi.evaluation.result import RANK_SCHEMA
from castpoi.experiments import runner
from castpoi.experiments.experiment import CityFolder
from tests.contract import odd_city
from tests.evaluation.results import BEYOND
from tests.experiments.stand_in import __file__ as stand_in


@pytest.fixture
def village(tmp_path: Path) -> CityFolder:
    """The odd city of the contract, in a folder named village, with tables for the stand-in."""
    city = odd_city()
    replace(city, manifest={**city.manifest, "train": 8}).save(tmp_path / "village")
    one = pl.DataFrame([[1] * len(RANK_SCHEMA)], schema=RANK_SCHEMA, orient="row", strict=False)
    one.write_parquet(tmp_path / "village" / "ranks.parquet")
    metrics = {"metrics": {}, "beyond": asdict(BEYOND)}
    (tmp_path / "village" / "metrics.json").write_text(json.dumps(metrics))
    return CityFolder.at(tmp_path / "village")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in replaces the worker of a suite."""
    monkeypatch.setattr(runner, "_POLL_SECONDS", 0.01)
    monkeypatch.setattr(runner, "WORKER", (sys.executable, "-S", stand_in))
