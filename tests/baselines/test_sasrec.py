import torch

from castpoi.baselines.sasrec import SasRec, SasRecConfig
from tests.baselines.oracle import check_loss, check_scores, load_oracle
from tests.baselines.prefixes import check_every_prefix, check_padding_is_not_read
from tests.baselines.transformer_names import names_of_blocks

ORACLE = load_oracle("sasrec")
LAYERS = ORACLE.about["n_layers"]
NAMED = {
    "place.weight": "item_embedding.weight",
    "slot.weight": "position_embedding.weight",
    "norm.weight": "LayerNorm.weight",
    "norm.bias": "LayerNorm.bias",
    **names_of_blocks(LAYERS),
}


def oracles_twin() -> SasRec:
    config = SasRecConfig(
        width=8,
        window=6,
        layers=LAYERS,
        heads=2,
        feed_forward_width=ORACLE.about["inner_size"],
        padding_class=True,
    )
    model = SasRec(config=config, places=ORACLE.places)
    ORACLE.load_into(model, NAMED)
    return model


def test_sasrec_scores_as_the_oracle_does() -> None:
    check_scores(oracles_twin(), ORACLE)


def test_sasrec_learns_from_the_loss_of_the_oracle() -> None:
    check_loss(oracles_twin(), ORACLE)


def test_sasrec_states_of_a_window_are_those_of_its_prefixes_alone() -> None:
    check_every_prefix(oracles_twin().double())


def test_sasrec_does_not_read_padding() -> None:
    check_padding_is_not_read(oracles_twin())


def test_sasrec_begins_with_small_weights_and_no_padding() -> None:
    torch.manual_seed(1)
    model = SasRec(config=SasRecConfig.preset("paper"), places=2000)
    assert model.place.weight[0].abs().max() == 0
    assert abs(float(model.place.weight[1:].detach().std()) - 0.02) < 1e-3
    block = model.get_submodule("blocks.0")
    assert block.get_parameter("attention.query.bias").abs().max() == 0
    assert (block.get_parameter("feed_forward_norm.weight") == 1).all()
    assert abs(float(block.get_parameter("feed_forward.widen.weight").detach().std()) - 0.02) < 1e-3
