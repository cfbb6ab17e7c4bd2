"""What the tests of suites share: a village on disk, a row, and commands that take no time."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from castpoi.experiments import job
from castpoi.experiments.experiment import CityFolder
from tests.contract import odd_city
from tests.experiments.stand_in import __file__ as stand_in


@pytest.fixture
def village(tmp_path: Path) -> CityFolder:
    """The odd city of the contract, in a folder named village."""
    city = odd_city()
    replace(city, manifest={**city.manifest, "train": 8}).save(tmp_path / "village")
    return CityFolder.at(tmp_path / "village")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in takes the place of castpoi in the processes of a suite."""
    monkeypatch.setattr(job, "_TETHERED", (sys.executable, "-S", stand_in))
