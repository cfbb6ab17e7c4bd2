"""Models trained with the fast and with the full objective reach the same full loss.

Both learn from the whole train part in every step, so that they differ in what the reader reads and
in nothing else. A model without a reader, and one whose reader stays zero, are trained too: a
reader that learned nothing would be seen.
"""

from collections.abc import Callable
from typing import Any, Final

import pytest
import torch

from castpoi.checkins.city import City
from castpoi.checkins.prepare import Preparation, prepare
from castpoi.checkins.synthetic import SynthesisConfig, synthesize, write_checkins
from castpoi.model.castpoi import CastPoi
from castpoi.model.config import ModelConfig
from castpoi.training.config import CastPoiTraining
from castpoi.training.objectives import Objective
from castpoi.training.objectives.fast import FastObjective
from tests.training.small import full_objective, tiny_model, tiny_model_config

STEPS: Final = 24
ALL: Final = 10_000
"""More windows and prefixes than there are."""

WITH_READER = tiny_model_config(window=200)
"""The window is longer than any trajectory, so both objectives have the same histories."""
WITHOUT = tiny_model_config(window=200, candidate_conditioning=False)


@pytest.fixture(scope="module")
def hamlet(tmp_path_factory: pytest.TempPathFactory) -> City:
    """Twelve people and 35 places: the full objective is affordable, and the reader counts."""
    folder = tmp_path_factory.mktemp("hamlet")
    config = SynthesisConfig(users=12, places=40, days=25)
    checkins = synthesize(config, seed=5)
    source = write_checkins(checkins, folder / "checkins.csv", config=config, seed=5)
    return prepare([source], folder / "city", Preparation(accept_rhythm=True))


def full(city: City, config: ModelConfig) -> Objective[Any]:
    return full_objective(city, config, batch=ALL, at_once=64)


def fast(city: City, config: ModelConfig) -> Objective[Any]:
    """The reader reads a target, its four hardest rivals and four draws: 9 places of 35."""
    return FastObjective(
        city,
        model=config,
        config=CastPoiTraining(
            windows_per_step=ALL,
            hard_candidates=4,
            drawn_candidates=4,
            explore_weight=1.5,
            margin_weight=0.5,
        ),
        seed=0,
    )


def loss_after(
    city: City,
    config: ModelConfig,
    objective: Callable[[City, ModelConfig], Objective[Any]],
    *,
    reader_learns: bool = True,
) -> float:
    """The full loss of a model after some steps with an objective."""
    model, trained_by = tiny_model(city, config), objective(city, config)
    if not reader_learns:
        for name, weight in model.named_parameters():  # which are zero at the start
            weight.requires_grad_(not name.startswith("reader.head.last."))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
    for epoch in range(STEPS):
        optimizer.zero_grad()
        (batch,) = trained_by.batches(epoch)
        trained_by.loss(model, batch).backward()
        optimizer.step()
    return full_loss(city, model)


def full_loss(city: City, model: CastPoi) -> float:
    objective = full(city, model.config)
    with torch.no_grad():
        return float(objective.loss(model.eval(), objective.batches(0)[0]))


def test_both_objectives_reach_the_same_loss_though_the_reader_reads_few_places(
    hamlet: City,
) -> None:
    by_full = loss_after(hamlet, WITH_READER, full)
    by_fast = loss_after(hamlet, WITH_READER, fast)
    without_reader = loss_after(hamlet, WITHOUT, fast)
    zero_reader = loss_after(hamlet, WITH_READER, fast, reader_learns=False)
    assert by_full < full_loss(hamlet, tiny_model(hamlet, WITH_READER)) - 2
    worth = without_reader - by_full
    assert worth > 0.4  # what the reader is worth, so that there is something to miss
    assert abs(by_fast - by_full) < worth / 3
    assert zero_reader > by_full + 2 * worth / 3  # the bound would see it
