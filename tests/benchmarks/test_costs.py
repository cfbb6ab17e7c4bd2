"""What a method costs, on a city of eight users."""

import json
import sys
from pathlib import Path

import pytest

from benchmarks import costs
from castpoi.checkins.prepare import Preparation, prepare
from castpoi.checkins.synthetic import SynthesisConfig, synthesize, write_checkins


@pytest.fixture
def hamlet(tmp_path: Path) -> Path:
    config = SynthesisConfig(users=8, places=30, days=15)
    checkins = synthesize(config, seed=5)
    source = write_checkins(checkins, tmp_path / "checkins.csv", config=config, seed=5)
    prepare([source], tmp_path / "hamlet", Preparation(accept_rhythm=True))
    return tmp_path / "hamlet"


def test_a_whole_training_is_the_measured_epochs_times_those_of_the_committed_runs(
    hamlet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "costs.json"
    out.write_text(json.dumps({"hamlet": {"kept": {"training_s": 7.0}}}))
    run = tmp_path / "results" / "hamlet" / "stamp-tuned-42"
    run.mkdir(parents=True)
    trained = {"config": {"training": {"epochs": 11}}}
    (run / "manifest.json").write_text(json.dumps({"trained": trained}))
    monkeypatch.setattr(costs, "ROOT", tmp_path)
    given = [str(hamlet), "--only", "stamp-tuned", "ppm", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", ["costs", *given])
    costs.main()
    found = json.loads(out.read_text())["hamlet"]
    assert found["kept"] == {"training_s": 7.0}
    network, counted = found["stamp-tuned"], found["ppm"]
    assert network["epochs"] == 11
    epochs = 11 * network["epoch_s"]
    assert network["training_s"] == pytest.approx(network["around_epochs_s"] + epochs)
    assert network["parameters"] > 10_000
    assert counted["parameters"] == 0
    assert counted["training_s"] == counted["around_epochs_s"] > 0
    assert min(network["request_ms"], counted["request_ms"]) > 0
