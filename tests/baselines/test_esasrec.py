import torch

from castpoi.baselines.sasrec import ESasRec, ESasRecConfig
from tests.baselines.prefixes import LENGTHS, WINDOWS, check_every_prefix, check_padding_is_not_read


def small_model() -> ESasRec:
    torch.manual_seed(4)
    config = ESasRecConfig(width=8, window=6, heads=2, feed_forward_width=16)
    model = ESasRec(config=config, places=12).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight), alpha=0.3)
    return model


def test_esasrec_states_of_a_window_are_those_of_its_prefixes_alone() -> None:
    check_every_prefix(small_model().double())


def test_esasrec_does_not_read_padding() -> None:
    check_padding_is_not_read(small_model())


def test_closed_gates_leave_the_visit_and_its_slot() -> None:
    model = small_model()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith("gate.bias"):
                weight.fill_(-1e4)
    visits = model.place(WINDOWS) + model.slot(torch.arange(6))
    torch.testing.assert_close(model.states(WINDOWS, LENGTHS), model.norm(visits))


def test_open_gates_are_a_plain_pre_norm_transformer() -> None:
    model = small_model()
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
