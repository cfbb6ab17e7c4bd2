import pytest
import torch
from torch import Tensor

from castpoi.baselines.caser import Caser, CaserConfig
from castpoi.core.errors import BadInput
from castpoi.training.objectives.next_place import next_place_loss
from tests.baselines.oracle import TOLERANCE, load_oracle
from tests.baselines.prefixes import check_every_prefix
from tests.messages import refused

ORACLE = load_oracle("caser")


class CaserWithUsers(Caser):
    """RecBole's Caser: its last layer also takes a vector of the user of each history."""

    def __init__(self, *, config: CaserConfig, places: int) -> None:
        super().__init__(config=config, places=places)
        self.of_users = torch.zeros(1, config.width)  # their share of the last layer. [B, D]

    def _out(self, found: Tensor) -> Tensor:
        read = self.hidden(self.dropout(found)).relu()  # [..., D]
        state: Tensor = (self.out(read) + self.of_users).relu()
        return state


def oracles_twin() -> tuple[CaserWithUsers, float]:
    """Our Caser with RecBole's weights, and the norm of those that ours does not have."""
    config = CaserConfig(
        width=8, window=6, horizontal_filters=3, vertical_filters=2, padding_class=True
    )
    model = CaserWithUsers(config=config, places=ORACLE.places)
    theirs = dict(ORACLE.weights)
    users = theirs.pop("user_embedding.weight")  # [U, D]
    last = theirs.pop("fc2.weight")  # [D, 2 D]
    ours = {"place.weight": theirs.pop("item_embedding.weight"), "out.weight": last[:, :8]}
    for height in range(6):
        filters = theirs.pop(f"conv_h.{height}.weight").squeeze(1)  # [H, height, D]
        ours[f"horizontal.{height}"] = filters.mT
    biases = [theirs.pop(f"conv_h.{height}.bias") for height in range(6)]
    ours["horizontal_bias"] = torch.stack(biases)
    ours["vertical.weight"] = theirs.pop("conv_v.weight").flatten(1)  # [V, L]
    ours["vertical.bias"] = theirs.pop("conv_v.bias")
    ours["hidden.weight"] = theirs.pop("fc1.weight")
    ours["hidden.bias"], ours["out.bias"] = theirs.pop("fc1.bias"), theirs.pop("fc2.bias")
    assert not theirs
    model.load_state_dict(ours)
    assert ORACLE.users is not None
    model.of_users = users[ORACLE.users] @ last[:, 8:].mT
    return model.eval(), float(users.norm() + last.norm() - last[:, :8].norm())


def noisy(model: Caser) -> Caser:
    """In double precision, with weights so large that no part can be left out unseen."""
    torch.manual_seed(1)
    model = model.double().eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(0.0, 0.4)
    return model


def test_caser_scores_as_the_oracle_does() -> None:
    model, _ = oracles_twin()
    with torch.no_grad():
        together = model.scores(model.state(ORACLE.rows, ORACLE.lengths))
        of_users, apart = model.of_users, []
        for number, length in enumerate(ORACLE.lengths):
            model.of_users = of_users[[number]]
            state = model.state(ORACLE.rows[[number], :length], length[None])
            apart.append(model.scores(state))
    torch.testing.assert_close(together, ORACLE.scores, rtol=0, atol=TOLERANCE)
    torch.testing.assert_close(torch.cat(apart), ORACLE.scores, rtol=0, atol=TOLERANCE)


def test_caser_learns_from_the_loss_of_the_oracle_but_for_the_norms_of_its_user_weights() -> None:
    model, norm_of_users = oracles_twin()
    assert ORACLE.targets is not None
    assert ORACLE.loss is not None
    loss = next_place_loss(model, model.state(ORACLE.rows, ORACLE.lengths), ORACLE.targets)
    expected = ORACLE.loss.squeeze() - model.penalty_weight * norm_of_users
    torch.testing.assert_close(loss, expected, rtol=0, atol=TOLERANCE)


def slow_state(model: Caser, rows: list[int]) -> Tensor:
    """Every filter at every slot, one by one. -> [D]"""
    window = model.window
    visits = model.place.weight[rows + [0] * (window - len(rows))]  # [L, D]
    found = [
        (weight.unsqueeze(1) * visits).sum(dim=0) + bias
        for weight, bias in zip(model.vertical.weight, model.vertical.bias, strict=True)
    ]
    for height in range(1, window + 1):
        for number, filter_ in enumerate(model.horizontal[height - 1]):
            responses = [
                (filter_.mT * visits[slot : slot + height]).sum()
                for slot in range(window - height + 1)
            ]
            best = torch.stack(responses).max() + model.horizontal_bias[height - 1, number]
            found.append(best.relu().unsqueeze(0))
    read = model.hidden(torch.cat(found)).relu()
    state: Tensor = model.out(read).relu()
    return state


def test_filters_of_all_heights_respond_as_in_a_slow_loop() -> None:
    config = CaserConfig(width=4, window=13, horizontal_filters=2)  # more than are run at once
    model = noisy(Caser(config=config, places=9))
    histories = [[5, 2, 5, 9, 1, 7, 7, 3, 8, 2, 4, 6, 1], [3, 8, 3, 1], [6]]
    expected = torch.stack([slow_state(model, each) for each in histories])
    rows = torch.tensor([each + [0] * (13 - len(each)) for each in histories])
    state = model.state(rows, torch.tensor([13, 4, 1]))
    torch.testing.assert_close(state, expected)
    grads, expected_grads = (
        torch.autograd.grad((each**2).sum(), [*model.horizontal, model.horizontal_bias])
        for each in (state, expected)
    )
    torch.testing.assert_close(grads, expected_grads)


@pytest.mark.parametrize("window", [6, 9])  # full, and longer than any history
@pytest.mark.parametrize("reads_padding", [True, False])
def test_caser_states_of_a_window_are_those_of_its_prefixes_alone(
    window: int, reads_padding: bool
) -> None:
    config = CaserConfig(width=4, window=window, horizontal_filters=2)
    model = noisy(Caser(config=config, places=12))
    if not reads_padding:  # whose row is not zero where it is a class of the loss
        model.clear_padding()
    check_every_prefix(model)


def test_a_window_longer_than_taps_can_be_counted_is_refused() -> None:
    assert CaserConfig(window=254).window == 254
    with refused(BadInput):
        CaserConfig(window=255)


def test_the_penalty_is_the_sum_of_the_norms_of_all_matrices() -> None:
    model = noisy(Caser(config=CaserConfig(width=4, window=3, penalty_weight=0.5), places=5))
    penalty = model.penalty()
    assert penalty is not None
    matrices = [weight for name, weight in model.named_parameters() if "bias" not in name]
    assert len(matrices) == 7  # places, three heights, vertical filters, two layers
    expected = 0.5 * sum(float((weight.detach() ** 2).sum().sqrt()) for weight in matrices)
    assert penalty.item() == pytest.approx(expected)


def test_without_a_weight_there_is_no_penalty() -> None:
    assert Caser(config=CaserConfig(window=2, penalty_weight=0.0), places=5).penalty() is None


def test_caser_begins_as_the_oracle_does() -> None:
    torch.manual_seed(1)
    model = Caser(config=CaserConfig.preset("paper"), places=2000)
    assert float(model.place.weight.detach().std()) == pytest.approx(1 / 64, rel=0.02)
    assert model.place.weight[0].any()  # short windows see this row
    for height in (1, 7, 50):
        bound = (64 * height) ** -0.5  # of a convolution in torch
        for weight in (model.horizontal[height - 1], model.horizontal_bias[height - 1]):
            assert 0.6 * bound < float(weight.detach().abs().max()) <= bound
    fan = sum(model.hidden.weight.shape)
    assert float(model.hidden.weight.detach().std()) == pytest.approx((2 / fan) ** 0.5, rel=0.02)
    assert not model.hidden.bias.any()
