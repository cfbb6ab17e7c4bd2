import pytest
import torch
from torch import nn

from castpoi.training.averaging import WeightAverage, set_weights


def one_weight(value: float) -> nn.Linear:
    model = nn.Linear(1, 1, bias=False)
    set_weights(model, {"weight": torch.tensor([[value]])})
    return model


def test_the_mean_soon_forgets_the_start() -> None:
    model = one_weight(0.0)
    average = WeightAverage(model, decay=0.999)
    set_weights(model, {"weight": torch.tensor([[11.0]])})
    average.add(model, 1)  # keeps 2 / 11 of itself
    assert average.mean["weight"].item() == pytest.approx(9.0)
    average.add(model, 2)  # keeps 3 / 12 of itself
    assert average.mean["weight"].item() == pytest.approx(0.25 * 9 + 0.75 * 11)


def test_the_mean_keeps_its_decay_in_the_long_run() -> None:
    model = one_weight(0.0)
    average = WeightAverage(model, decay=0.5)
    set_weights(model, {"weight": torch.tensor([[8.0]])})
    average.add(model, 10_000)
    assert average.mean["weight"].item() == pytest.approx(4.0)


def test_the_model_has_the_mean_only_while_the_block_runs() -> None:
    model = one_weight(3.0)
    average = WeightAverage(model, decay=0.9)
    average.restore({"weight": torch.tensor([[7.0]])})
    with average.applied(model):
        assert model.weight.item() == 7.0
    assert model.weight.item() == 3.0
