"""Our models have the scores and losses of the official ones, whose fixtures cover all cases."""

import os
import subprocess
from pathlib import Path

import pytest
import torch

from castpoi.baselines.narm import Narm, NarmConfig
from castpoi.checkins.prepare import Preparation, prepare
from castpoi.checkins.synthetic import SynthesisConfig, synthesize, write_checkins
from tests.baselines.oracle import (
    FOLDER,
    NAMED,
    NAMES,
    check_loss,
    check_scores,
    load_oracle,
    twin,
)

ORACLE_PYTHON = os.environ.get("CASTPOI_ORACLE_PYTHON")
TOOL = Path(__file__).resolve().parents[2] / "tools" / "recbole_oracle.py"


@pytest.mark.parametrize("name", NAMES)
def test_the_oracle_has_scored_every_kind_of_history(name: str) -> None:
    oracle = load_oracle(name)
    window = oracle.about["window"]
    places = [rows[rows > 0] for rows in oracle.rows]
    repeats = [len(visited) - len(visited.unique()) for visited in places]
    assert oracle.rows.shape == (len(oracle.lengths), window)
    assert {1, 2, window - 1, window} <= set(oracle.lengths.tolist())
    assert [len(visited) for visited in places] == oracle.lengths.tolist()
    assert min(repeats) == 0
    assert max(repeats) == window - 1


def test_bert4rec_drops_the_first_visit_of_short_histories_too() -> None:
    oracle = load_oracle("bert4rec")
    kept = oracle.scores_of_all_visits
    assert kept is not None
    is_full = oracle.lengths == oracle.about["window"]
    # next to the mask a full window has no room for its first visit, a short one has
    torch.testing.assert_close(oracle.scores[is_full], kept[is_full])
    assert (oracle.scores - kept)[~is_full].abs().amax(dim=1).min() > 0.01


@pytest.mark.parametrize("name", NAMED)
def test_a_model_has_the_scores_of_the_oracle(name: str) -> None:
    check_scores(twin(name), load_oracle(name))


@pytest.mark.parametrize("name", NAMED)
def test_a_model_has_the_loss_of_the_oracle(name: str) -> None:
    check_loss(twin(name), load_oracle(name))


def test_an_unused_weight_of_the_oracle_is_an_error() -> None:
    oracle = load_oracle("narm")
    model = Narm(config=NarmConfig(width=8, memory_width=12), places=oracle.places)
    with pytest.raises(AssertionError, match=r"no weight of ours takes \['a_1.weight'"):
        oracle.load_into(model, {"place.weight": "item_embedding.weight"})


HURRY = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv.pop(1))
from recbole_training import Training
from castpoi.checkins.city import City
city = City.load(Path(sys.argv.pop(1)))
trainings = [Training("STAMP", city, seed=3, most=None) for _ in range(2)]
trainings[1].hurry()
losses = [training.learn(1)[0] for training in trainings]
assert abs(losses[0] - losses[1]) < 1e-5, losses
whole, parts = (dict(training.model.named_parameters()) for training in trainings)
for name in whole:
    far = (whole[name] - parts[name]).abs().max().item()
    assert far < 1e-5, (name, far)
"""
"""One step of a model without dropout, as in RecBole and in parts."""


@pytest.mark.slow
@pytest.mark.skipif(ORACLE_PYTHON is None, reason="CASTPOI_ORACLE_PYTHON names no environment")
def test_a_faster_step_of_the_oracle_equals_its_step(tmp_path: Path) -> None:
    assert ORACLE_PYTHON is not None
    config = SynthesisConfig(users=24, places=60, days=25)
    source = write_checkins(
        synthesize(config, seed=5), tmp_path / "checkins.csv", config=config, seed=5
    )
    prepare([source], tmp_path / "city", Preparation(accept_rhythm=True))
    words = [ORACLE_PYTHON, "-c", HURRY, str(TOOL.parent), str(tmp_path / "city")]
    subprocess.run(words, check=True, env=os.environ | {"PYTHONPATH": str(TOOL.parents[1] / "src")})


@pytest.mark.slow
@pytest.mark.skipif(ORACLE_PYTHON is None, reason="CASTPOI_ORACLE_PYTHON names no environment")
def test_the_oracle_still_writes_the_same_fixtures(tmp_path: Path) -> None:
    assert ORACLE_PYTHON is not None
    subprocess.run([ORACLE_PYTHON, str(TOOL), "fixtures", str(tmp_path)], check=True)
    for name in NAMES:
        file = f"{name}.safetensors"
        assert (tmp_path / file).read_bytes() == (FOLDER / file).read_bytes()
