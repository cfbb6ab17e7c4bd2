import math

import torch

from castpoi.baselines.core import Core, CoreConfig
from tests.baselines.oracle import check_loss, check_scores, load_oracle
from tests.baselines.prefixes import LENGTHS, WINDOWS, check_every_prefix, check_padding_is_not_read
from tests.baselines.transformer_names import names_of_blocks

ORACLE = load_oracle("core")
LAYERS = ORACLE.about["n_layers"]
NAMED = {
    "place.weight": "item_embedding.weight",
    "slot.weight": "net.position_embedding.weight",
    "norm.weight": "net.LayerNorm.weight",
    "norm.bias": "net.LayerNorm.bias",
    "weight.weight": "net.fn.weight",
    "weight.bias": "net.fn.bias",
    **names_of_blocks(LAYERS, within="net."),
}


def oracles_twin() -> Core:
    config = CoreConfig(
        width=8,
        window=6,
        layers=LAYERS,
        heads=2,
        feed_forward_width=ORACLE.about["inner_size"],
        padding_class=True,
    )
    model = Core(config=config, places=ORACLE.places)
    ORACLE.load_into(model, NAMED)
    return model


def test_core_scores_as_the_oracle_does() -> None:
    check_scores(oracles_twin(), ORACLE)


def test_core_learns_from_the_loss_of_the_oracle() -> None:
    check_loss(oracles_twin(), ORACLE)


def test_core_states_of_a_window_are_those_of_its_prefixes_alone() -> None:
    check_every_prefix(oracles_twin().double())


def test_core_does_not_read_padding() -> None:
    check_padding_is_not_read(oracles_twin())


def test_a_weak_first_visit_keeps_its_state_whatever_strong_visits_follow() -> None:
    model = oracles_twin()
    with torch.no_grad():
        model.weight.weight.mul_(1e4)  # weights so far apart that running sums would lose one
    alone = model.state(WINDOWS[:1, :1], torch.tensor([1]))
    torch.testing.assert_close(model.states(WINDOWS, LENGTHS)[:1, 0], alone)
    torch.testing.assert_close(alone.norm(dim=1), torch.ones(1))


def test_a_score_of_core_is_a_cosine_over_the_temperature() -> None:
    model = oracles_twin()
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
