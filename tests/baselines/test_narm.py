import math

import pytest
import torch

from castpoi.baselines.narm import Narm, NarmConfig


def test_narm_worked_by_hand() -> None:
    model = Narm(config=NarmConfig(width=1, memory_width=1), places=2).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.zero_()
        model.place.weight[1:, 0] = torch.tensor([0.1, 0.3])
        model.get_parameter("gru.weight_ih_l0")[2] = (
            1.0  # gates at 1/2, so h = (h before + tanh(place)) / 2
        )
        model.weight.weight.fill_(4.0)  # with no key and no query: 4 sigmoid(0) = 2 a visit
        model.out.weight.copy_(torch.tensor([[1.0, 10.0]]))
    state = model.state(torch.tensor([[1, 2]]), torch.tensor([2]))
    first = math.tanh(0.1) / 2
    last = (first + math.tanh(0.3)) / 2
    assert state.item() == pytest.approx(2 * (first + last) + 10 * last)


def test_the_first_weights_of_narm_spread_as_in_recbole() -> None:
    model = Narm(config=NarmConfig.preset("paper"), places=2000)
    assert model.place.weight[1:].std().item() == pytest.approx(math.sqrt(2 / 2065), rel=0.05)
    assert model.key.weight.std().item() == pytest.approx(math.sqrt(2 / 256), rel=0.05)
    assert model.out.weight.std().item() == pytest.approx(math.sqrt(2 / 320), rel=0.05)
    assert not model.gru.bias
