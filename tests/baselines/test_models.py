import math

import pytest
import torch

from castpoi.baselines.core import Core, CoreConfig
from castpoi.baselines.narm import Narm, NarmConfig
from castpoi.baselines.sasrec import SasRec, SasRecConfig
from castpoi.baselines.stamp import Stamp, StampConfig
from tests.baselines.oracle import twin
from tests.baselines.prefixes import LENGTHS, WINDOWS
from tests.baselines.test_prefixes import small_esasrec


def test_the_first_weights_of_narm_spread_as_in_recbole() -> None:
    model = Narm(config=NarmConfig.preset("paper"), places=2000)
    assert model.place.weight[1:].std().item() == pytest.approx(math.sqrt(2 / 2065), rel=0.05)
    assert model.key.weight.std().item() == pytest.approx(math.sqrt(2 / 256), rel=0.05)
    assert model.out.weight.std().item() == pytest.approx(math.sqrt(2 / 320), rel=0.05)
    assert not model.gru.bias


def test_the_first_weights_of_stamp_spread_as_in_recbole() -> None:
    model = Stamp(config=StampConfig.preset("paper"), places=2000)
    assert model.place.weight[1:].std().item() == pytest.approx(0.002, rel=0.05)
    for layer in (model.key, model.last_query, model.mean_query, model.memory_out, model.last_out):
        assert layer.weight.std().item() == pytest.approx(0.05, rel=0.1)
    assert not model.last_out.bias.any()


def core() -> Core:
    model = twin("core")
    assert isinstance(model, Core)
    return model


def test_a_weak_first_visit_keeps_its_state_whatever_strong_visits_follow() -> None:
    model = core()
    with torch.no_grad():
        model.weight.weight.mul_(1e4)  # weights so far apart that running sums would lose one
    alone = model.state(WINDOWS[:1, :1], torch.tensor([1]))
    torch.testing.assert_close(model.states(WINDOWS, LENGTHS)[:1, 0], alone)
    torch.testing.assert_close(alone.norm(dim=1), torch.ones(1))


def test_a_score_of_core_is_a_cosine_over_the_temperature() -> None:
    model = core()
    scores = model.scores(model.state(WINDOWS, LENGTHS)).detach()
    assert float(scores.abs().max()) <= 1 / 0.07 + 1e-4
    one_visit = scores[2]  # its only place is also its state
    assert math.isclose(float(one_visit[4]), 1 / 0.07, rel_tol=1e-5)


def test_core_begins_with_all_weights_within_one_range() -> None:
    torch.manual_seed(1)
    model = Core(config=CoreConfig.preset("paper"), places=50)
    most = 1 / math.sqrt(64)
    assert all(float(weight.detach().abs().max()) <= most for weight in model.parameters())
    assert float(model.norm.weight.detach().std()) > 0.02  # norms too, as in RecBole
    assert model.place.weight[0].abs().max() == 0


def test_sasrec_begins_with_small_weights_and_no_padding() -> None:
    torch.manual_seed(1)
    model = SasRec(config=SasRecConfig.preset("paper"), places=2000)
    assert model.place.weight[0].abs().max() == 0
    assert abs(float(model.place.weight[1:].detach().std()) - 0.02) < 1e-3
    block = model.get_submodule("blocks.0")
    assert block.get_parameter("attention.query.bias").abs().max() == 0
    assert (block.get_parameter("feed_forward_norm.weight") == 1).all()
    assert abs(float(block.get_parameter("feed_forward.widen.weight").detach().std()) - 0.02) < 1e-3


def test_closed_gates_leave_the_visit_and_its_slot() -> None:
    model = small_esasrec()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith("gate.bias"):
                weight.fill_(-1e4)
    visits = model.place(WINDOWS) + model.slot(torch.arange(6))
    torch.testing.assert_close(model.states(WINDOWS, LENGTHS), model.norm(visits))


def test_open_gates_are_a_plain_pre_norm_transformer() -> None:
    model = small_esasrec()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith("gate.bias"):
                weight.fill_(1e4)
    visits = model.place(WINDOWS) + model.slot(torch.arange(6))
    for block in model.blocks:
        look, think = block.get_submodule("attention"), block.get_submodule("feed_forward")
        visits = visits + look(block.get_submodule("attention_norm")(visits), None)
        visits = visits + think(block.get_submodule("feed_forward_norm")(visits))
    torch.testing.assert_close(model.states(WINDOWS, LENGTHS), model.norm(visits))
