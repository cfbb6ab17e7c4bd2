import math

import pytest
import torch

from castpoi.baselines.stamp import Stamp, StampConfig


def test_stamp_worked_by_hand() -> None:
    model = Stamp(config=StampConfig(width=1), places=2)
    with torch.no_grad():
        for weight in model.parameters():
            weight.zero_()
        model.place.weight[1:, 0] = torch.tensor([0.1, 0.3])
        model.weight.weight.fill_(4.0)  # with no key and no query: 4 sigmoid(0) = 2 a visit
        model.memory_out.weight.fill_(1.0)
        model.last_out.weight.fill_(1.0)
    state = model.state(torch.tensor([[1, 2]]), torch.tensor([2]))
    memory = 0.2 + 2 * (0.1 + 0.3)  # mean and weighed sum
    assert state.item() == pytest.approx(math.tanh(memory) * math.tanh(0.3))


def test_the_first_weights_of_stamp_spread_as_in_recbole() -> None:
    model = Stamp(config=StampConfig.preset("paper"), places=2000)
    assert model.place.weight[1:].std().item() == pytest.approx(0.002, rel=0.05)
    for layer in (model.key, model.last_query, model.mean_query, model.memory_out, model.last_out):
        assert layer.weight.std().item() == pytest.approx(0.05, rel=0.1)
    assert not model.last_out.bias.any()
