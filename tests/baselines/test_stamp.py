import math

import pytest
import torch

from castpoi.baselines.stamp import Stamp, StampConfig
from tests.baselines.oracle import check_loss, check_scores, load_oracle
from tests.baselines.prefixes import check_every_prefix, check_padding_is_not_read

NAMED = {
    "place.weight": "item_embedding.weight",
    "key.weight": "w1.weight",
    "last_query.weight": "w2.weight",
    "mean_query.weight": "w3.weight",
    "query_bias": "b_a",
    "weight.weight": "w0.weight",
    "memory_out.weight": "mlp_a.weight",
    "memory_out.bias": "mlp_a.bias",
    "last_out.weight": "mlp_b.weight",
    "last_out.bias": "mlp_b.bias",
}


def oracles_twin(*, reads_padding: bool) -> Stamp:
    oracle = load_oracle("stamp")
    config = StampConfig(width=8, window=6, reads_padding=reads_padding, padding_class=True)
    model = Stamp(config=config, places=oracle.places)
    oracle.load_into(model, NAMED)
    return model


def test_stamp_scores_as_the_oracle_does() -> None:
    check_scores(oracles_twin(reads_padding=True), load_oracle("stamp"))


def test_stamp_learns_from_the_loss_of_the_oracle() -> None:
    check_loss(oracles_twin(reads_padding=True), load_oracle("stamp"))


@pytest.mark.parametrize("reads_padding", [True, False])
def test_stamp_states_of_a_window_are_those_of_its_prefixes_alone(reads_padding: bool) -> None:
    check_every_prefix(oracles_twin(reads_padding=reads_padding))


def test_stamp_reads_padding_only_when_told_to() -> None:
    check_padding_is_not_read(oracles_twin(reads_padding=False))
    with pytest.raises(AssertionError, match="not equal"):
        check_padding_is_not_read(oracles_twin(reads_padding=True))


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
