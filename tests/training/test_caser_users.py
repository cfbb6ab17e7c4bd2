"""The experiment with vectors of users: Caser knows whose window it reads, as RecBole's does."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tools.caser_users import CaserOfUsers, ObjectiveOfUsers, RankerOfUsers, first_visits, main

from castpoi.baselines.caser import CaserConfig
from castpoi.checkins.city import City
from castpoi.evaluation.result import Result
from castpoi.training.sequence_config import SequenceTrainingConfig
from castpoi.training.train_part import train_histories

SHAPE = replace(CaserConfig.preset("paper"), user_vector=True, window=6, width=8, dropout=0.0)
PLAN = SequenceTrainingConfig(stride=3)


def model_of(city: City) -> CaserOfUsers:
    torch.manual_seed(3)
    users = len(train_histories(city))
    return CaserOfUsers(config=SHAPE, places=city.places.height, users=users)


def test_every_window_is_read_with_the_vector_of_its_user(town: City) -> None:
    model = model_of(town)
    objective = ObjectiveOfUsers(town, window=6, config=PLAN, seed=1)
    histories = train_histories(town)
    batch = np.arange(len(objective.windows))[::-1]
    objective.loss(model, batch)
    begins = objective.windows.chosen(batch).begin
    for window, user in zip(begins, model.who.tolist(), strict=True):
        assert histories.bounds[user] <= window < histories.bounds[user + 1]


def test_the_same_visits_of_another_user_have_another_state(town: City) -> None:
    model = model_of(town).eval()
    rows = torch.tensor([[1, 2, 3, 0, 0, 0]] * 2)
    model.who = torch.tensor([0, 1])
    one, other = model.states(rows, torch.tensor([3, 3]))  # [T, D] each
    assert not torch.allclose(one[2], other[2])
    last = model.state(rows, torch.tensor([3, 3]))
    assert torch.allclose(last, torch.stack([one[2], other[2]]), atol=1e-6)


def test_users_are_known_again_by_their_first_visit(town: City) -> None:
    model, histories = model_of(town), train_histories(town)
    known = {begin: number for number, begin in enumerate(first_visits(histories))}
    RankerOfUsers(model, known).encode(histories)
    assert model.who.tolist() == list(range(len(histories)))


def test_the_tool_ends_with_a_result(
    town_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "caser-user-vector-42"
    monkeypatch.setattr(sys, "argv", ["caser_users.py", str(town_folder), "--out", str(out)])
    main()
    result = Result.load(out)
    assert result.manifest["trained"]["config"]["model"]["user_vector"] is True
    assert (out / "experiment.json").is_file()
