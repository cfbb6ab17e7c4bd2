"""The benchmarks of training and scoring, on a city of eight users."""

import json
import sys
from pathlib import Path

import pytest
import torch

from benchmarks import __main__ as benchmarks
from benchmarks import learning
from castpoi.checkins.prepare import Preparation, prepare
from castpoi.checkins.synthetic import SynthesisConfig, synthesize, write_checkins
from castpoi.model.config import ModelConfig


@pytest.fixture
def hamlet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A prepared city, set as CASTPOI_CITY."""
    config = SynthesisConfig(users=8, places=30, days=15)
    source = write_checkins(
        synthesize(config, seed=5), tmp_path / "checkins.csv", config=config, seed=5
    )
    prepare([source], tmp_path / "hamlet", Preparation(accept_rhythm=True))
    monkeypatch.setenv("CASTPOI_CITY", str(tmp_path / "hamlet"))
    return tmp_path / "hamlet"


def test_a_pair_with_a_full_window_costs_the_operations_that_the_paper_counts() -> None:
    fast = ModelConfig.preset("fast")
    assert pair_multiply_adds(fast, 50) == 173_184
    assert pair_multiply_adds(fast, 50) - pair_multiply_adds(fast, 49) == 2 * 2 * 128


def pair_multiply_adds(config: ModelConfig, visits: int) -> float:
    return learning.pair_flop(config, visits=visits) / 2


def test_a_given_city_is_measured_and_the_file_has_commit_and_threads(
    hamlet: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(learning, "FAST_STEPS", 2)
    monkeypatch.setattr(learning, "NEXT_STEPS", 1)
    written = hamlet.parent / "bench.json"
    only = [word for name in ("learn", "parts", "score") for word in ("--only", name)]
    arguments = [*only, "--out", str(written)]
    monkeypatch.setattr(sys, "argv", ["benchmarks", *arguments])
    benchmarks.main()
    report = json.loads(written.read_text())
    assert report["threads"] == torch.get_num_threads()
    assert "commit" in report
    assert report["learn"]["city"] == report["score"]["city"] == "hamlet"
    assert report["learn"]["full_batch"] == 128
    assert 0 < report["learn"]["full_targets"] <= 128
    assert 0 < report["score"]["visits_read"] < 50
    assert report["score"]["share_of_product_rate"] > 0
    assert report["parts"]["targets"] > 0
    assert report["parts"]["mflop_per_target"] > 0.1
    assert "hamlet" in capsys.readouterr().out
