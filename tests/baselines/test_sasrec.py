import torch

from castpoi.baselines.sasrec import SasRec, SasRecConfig
from tests.baselines.prefixes import LENGTHS, WINDOWS
from tests.baselines.test_prefixes import small_esasrec


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
