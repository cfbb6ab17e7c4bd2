import math

import torch

from castpoi.baselines.core import Core, CoreConfig
from tests.baselines.oracle import twin
from tests.baselines.prefixes import LENGTHS, WINDOWS


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
