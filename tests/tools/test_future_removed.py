"""Models that learn from no check-in after a target."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.checkins.prepare import Preparation, prepare
from castpoi.checkins.synthetic import SynthesisConfig, synthesize, write_checkins
from castpoi.evaluation.ranking import rank_targets
from castpoi.methods.registry import METHODS
from castpoi.training.train import fit
from tools import future_removed


@pytest.fixture
def hamlet(tmp_path: Path) -> Path:
    config = SynthesisConfig(users=12, places=30, days=15)
    checkins = synthesize(config, seed=5)
    source = write_checkins(checkins, tmp_path / "checkins.csv", config=config, seed=5)
    prepare([source], tmp_path / "hamlet", Preparation(accept_rhythm=True))
    return tmp_path / "hamlet"


def test_a_target_is_ranked_by_a_model_without_the_check_ins_after_its_block(
    hamlet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "future.json"
    monkeypatch.setattr(sys, "argv", ["f", str(hamlet), "--model", "markov", "--out", str(out)])
    future_removed.main()
    found = json.loads(out.read_text())["methods"]["markov"]["every"]
    city = City.load(hamlet)
    rows = city.targets(record.TEST)
    ranks = rank_targets(
        fit(city, METHODS.named("markov")).ranker, city.trajectories, rows, method="markov"
    )
    assert found["targets"] == len(rows)
    assert found["MRR"]["all"] == pytest.approx(float(np.mean(1 / ranks)))

    at_us = np.sort(city.trajectories.at_us[rows])
    values = []
    for block in range(future_removed.BLOCKS):
        first, last = (len(rows) * each // future_removed.BLOCKS for each in (block, block + 1))
        cut = int(at_us[last - 1])
        before = future_removed.until(city, cut)
        assert before.trajectories.at_us.max() == cut
        some = before.targets(record.TEST)
        some = some[before.trajectories.at_us[some] >= at_us[first]]
        ranker = fit(before, METHODS.named("markov")).ranker
        values += (1 / rank_targets(ranker, before.trajectories, some, method="markov")).tolist()
    assert len(values) == len(rows)
    assert found["MRR"]["without_future"] == pytest.approx(float(np.mean(values)))


def test_a_file_of_another_city_is_refused(
    hamlet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "future.json"
    out.write_text('{"fingerprint": "f"}')
    monkeypatch.setattr(sys, "argv", ["f", str(hamlet), "--model", "revisit", "--out", str(out)])
    with pytest.raises(SystemExit, match="is of another city"):
        future_removed.main()
