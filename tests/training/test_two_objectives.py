"""The fast objective arrives where the paper's arrives: trained apart, judged by one loss."""

from typing import Any

import pytest
import torch

from castpoi.checkins.city import City
from castpoi.model.castpoi import CastPoi
from castpoi.training.fast_objective import FastConfig, FastObjective
from castpoi.training.fused_loss import LossConstants
from castpoi.training.objective import Objective
from tests.training.small import full_objective, tiny_model, tiny_model_config

EPOCHS = 3


def learned(model: CastPoi, objective: Objective[Any]) -> CastPoi:
    """The model after some epochs of plain steps."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for epoch in range(EPOCHS):
        for batch in objective.batches(epoch):
            optimizer.zero_grad()
            objective.loss(model, batch).backward()
            optimizer.step()
    return model


def test_both_objectives_reach_the_same_loss_though_the_reader_reads_few_places(town: City) -> None:
    """The window is longer than any trajectory, so both see the same histories."""
    config = tiny_model_config(window=200)
    full = full_objective(town, config, batch=64, at_once=64)
    fast = FastObjective(
        town,
        model=config,
        config=FastConfig(windows_a_step=1, hard_candidates=8, drawn_candidates=8),
        constants=LossConstants(),
        seed=0,
    )
    judge = full_objective(town, config, batch=10_000, at_once=64)

    def judged(model: CastPoi) -> float:
        with torch.no_grad():
            return float(judge.loss(model.eval(), judge.batches(0)[0]))

    untrained = judged(tiny_model(town, config))
    by_full = judged(learned(tiny_model(town, config), full))
    by_fast = judged(learned(tiny_model(town, config), fast))
    assert by_full < untrained - 0.8
    assert by_fast == pytest.approx(by_full, rel=0.03)
