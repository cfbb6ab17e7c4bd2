"""A method of one's own, from its package to a row of a suite, as in docs/reproduce.md."""

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from castpoi.evaluation.result import Result
from tests.contract import odd_city

DOCS = Path(__file__).parents[2] / "docs" / "reproduce.md"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """The package of the docs, as pip would have installed it."""
    section = DOCS.read_text().partition("## A method of your own")[2]
    code, points, suite = re.findall(r"```(?:python|toml)\n(.*?)```", section, re.DOTALL)[:3]
    site = tmp_path / "site"
    about = site / "homebody-1.0.dist-info"
    about.mkdir(parents=True)
    (site / "homebody.py").write_text(code)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: homebody\nVersion: 1.0\n")
    lines = points.replace('"', "").replace("project.entry-points.", "").splitlines()
    (about / "entry_points.txt").write_text("\n".join(lines))
    (tmp_path / "own.toml").write_text(suite)
    return site


def castpoi(site: Path, *words: object) -> str:
    path = os.pathsep.join([str(site), *sys.path])
    command = [sys.executable, "-m", "castpoi.cli.main", *map(str, words)]
    ended = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": path}
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_a_method_of_ones_own_is_listed_evaluated_and_a_row_of_a_suite(
    site: Path, tmp_path: Path
) -> None:
    village = odd_city()
    replace(village, manifest={**village.manifest, "train": 8}).save(tmp_path / "village")
    assert "where this person has been most" in castpoi(site, "train", "--help")
    own = ["reproduce", tmp_path / "village", "--suite", tmp_path / "own.toml"]
    own += ["--out", tmp_path / "out"]
    castpoi(site, *own)
    (found,) = (tmp_path / "out").glob("village/homebody/**/metrics.json")
    assert Result.load(found.parent).method == "homebody"
    (site / "homebody.py").write_text((site / "homebody.py").read_text() + "\nCHANGED = True\n")
    assert "1 of 2 experiments are to be run" in castpoi(site, *own, "--dry-run")
