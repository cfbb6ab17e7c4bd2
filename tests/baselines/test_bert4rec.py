import pytest
import torch
from torch import Tensor
from torch.nn import functional

from castpoi.baselines.bert4rec import Bert4Rec, Bert4RecConfig
from castpoi.baselines.sequence import real_slots
from castpoi.training.objectives.next_place import next_place_loss
from tests.baselines.oracle import TOLERANCE, check_scores, load_oracle, names_of_blocks
from tests.baselines.prefixes import LENGTHS, WINDOWS, check_padding_is_not_read

ORACLE = load_oracle("bert4rec")
LAYERS = ORACLE.about["n_layers"]
MASKED = torch.tensor(
    [
        [1, 0, 1, 0, 0, 1],
        [0, 0, 0, 1, 0, 0],
        [1, 0, 0, 0, 0, 0],
    ],
    dtype=torch.bool,
)
"""Slots of `WINDOWS`."""


def oracles_twin(*, forgets_first_visit: bool = False, padding_class: bool = False) -> Bert4Rec:
    config = Bert4RecConfig(
        width=8,
        window=6,
        layers=LAYERS,
        feed_forward_width=ORACLE.about["inner_size"],
        forgets_first_visit=forgets_first_visit,
        padding_class=padding_class,
    )
    model = Bert4Rec(config=config, places=ORACLE.places)
    named = {
        "slot.weight": "position_embedding.weight",
        "norm.weight": "LayerNorm.weight",
        "norm.bias": "LayerNorm.bias",
        "out.weight": "output_ffn.weight",
        "out.bias": "output_ffn.bias",
        "out_norm.weight": "output_ln.weight",
        "out_norm.bias": "output_ln.bias",
        "bias": "output_bias",
        **names_of_blocks(LAYERS),
    }
    assert ORACLE.weights.keys() == {*named.values(), "item_embedding.weight"}
    weights = {ours: ORACLE.weights[theirs] for ours, theirs in named.items()}
    for name in [name for name in weights if name.startswith(f"blocks.{LAYERS - 1}.")]:
        weights[name.replace(f"blocks.{LAYERS - 1}", "last_block")] = weights.pop(name)
    table = ORACLE.weights["item_embedding.weight"]  # its last row is the mask
    model.load_state_dict({"place.weight": table[:-1], "mask": table[-1], **weights})
    return model.eval()


def test_bert4rec_scores_as_the_oracle_does_when_it_forgets_the_first_visit() -> None:
    check_scores(oracles_twin(forgets_first_visit=True), ORACLE)


def test_bert4rec_scores_as_the_oracle_would_with_all_visits_that_fit() -> None:
    check_scores(oracles_twin(), ORACLE, ORACLE.scores_of_all_visits)


def test_the_loss_of_bert4rec_is_that_of_the_oracle() -> None:
    model, masked = oracles_twin(padding_class=True), ORACLE.is_masked
    assert masked is not None
    assert ORACLE.loss is not None
    assert set(masked.sum(dim=1).tolist()) == {0, 1, 2}
    states = model.masked_states(ORACLE.rows, ORACLE.lengths, masked)
    loss = next_place_loss(model, states, ORACLE.rows[masked])
    torch.testing.assert_close(loss, ORACLE.loss.squeeze(), rtol=0, atol=TOLERANCE)


def test_a_history_that_fills_the_window_is_read_alike_in_both_ways() -> None:
    ours, theirs = (
        oracles_twin(forgets_first_visit=forgets).state(ORACLE.rows, ORACLE.lengths)
        for forgets in (False, True)
    )
    is_full = ORACLE.lengths == 6
    torch.testing.assert_close(ours[is_full], theirs[is_full])
    assert ((ours - theirs).abs().amax(dim=1) > 1e-3)[~is_full].all()


def test_bert4rec_never_reads_padding() -> None:
    check_padding_is_not_read(oracles_twin())


def test_an_empty_history_is_ranked_by_the_bias_of_the_places() -> None:
    model = oracles_twin()
    state = model.state(torch.tensor([[0], [4]]), torch.tensor([0, 1]))
    assert not state[0].any()
    assert torch.equal(model.scores(state)[0], model.bias)


def plain_masked_states(model: Bert4Rec, rows: Tensor, lengths: Tensor, masked: Tensor) -> Tensor:
    """All slots through all blocks, and only then the masked ones. -> [M, D]"""
    vectors = model.place(rows).masked_scatter(
        masked.unsqueeze(2), model.mask.expand(int(masked.sum()), -1)
    )
    visits = model.norm(vectors + model.slot.weight[: rows.shape[1]])
    is_visible = real_slots(rows, lengths)[:, None, None]
    for block in [*model.blocks, model.last_block]:
        visits = block(visits, is_visible)
    answers = [visits[window, slot] for window, slot in masked.nonzero().tolist()]
    states: Tensor = model.out_norm(functional.gelu(model.out(torch.stack(answers))))
    return states


def test_masked_slots_have_the_same_output_as_in_a_full_last_block() -> None:
    model = oracles_twin().double()
    states = model.masked_states(WINDOWS, LENGTHS, MASKED)
    expected = plain_masked_states(model, WINDOWS, LENGTHS, MASKED)
    torch.testing.assert_close(states, expected)
    weights = [weight for weight in model.parameters() if weight is not model.bias]
    grads, expected_grads = (
        torch.autograd.grad((each**3).sum(), weights) for each in (states, expected)
    )
    torch.testing.assert_close(grads, expected_grads)


def test_a_masked_place_cannot_be_seen() -> None:
    model = oracles_twin()
    other = torch.where(MASKED, 11, WINDOWS)
    states = model.masked_states(WINDOWS, LENGTHS, MASKED)
    assert torch.equal(model.masked_states(other, LENGTHS, MASKED), states)


def test_visits_on_both_sides_of_a_mask_are_seen() -> None:
    model = oracles_twin()
    masked = torch.zeros(1, 6, dtype=torch.bool)
    masked[0, 2] = True
    state = model.masked_states(WINDOWS[:1], LENGTHS[:1], masked)
    for slot in (0, 1, 3, 4, 5):
        other = WINDOWS[:1].clone()
        other[0, slot] = 11
        assert not torch.allclose(model.masked_states(other, LENGTHS[:1], masked), state)


def test_bert4rec_begins_with_small_weights_and_no_bias() -> None:
    torch.manual_seed(1)
    model = Bert4Rec(config=Bert4RecConfig.preset("paper"), places=2000)
    assert model.place.weight[0].abs().max() == 0
    assert float(model.place.weight[1:].detach().std()) == pytest.approx(0.02, rel=0.02)
    assert float(model.mask.detach().std()) == pytest.approx(0.02, rel=0.3)
    assert not model.bias.any()
