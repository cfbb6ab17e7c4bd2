"""Draws that represent all other places: unbiased, and defined if no place is left."""

import numpy as np
import pytest
import torch

from castpoi.training.objectives.draws import draw_places

PLACES = 300
BUCKETS = torch.arange(2 * PLACES).view(2, PLACES).remainder(6).byte()


@pytest.fixture
def scores() -> torch.Tensor:
    draw = torch.Generator().manual_seed(1)
    scores = 3 * torch.randn(2, PLACES, generator=draw)
    scores[:, 7] = -torch.inf  # a place that is read anyway
    return scores


def test_the_weighted_mean_of_draws_is_on_average_that_of_all_places(scores: torch.Tensor) -> None:
    values = torch.randn(2, PLACES, generator=torch.Generator().manual_seed(2)).exp()
    probability = scores.exp()
    truth = (probability * values).sum(dim=1) / probability.sum(dim=1)
    rng = np.random.default_rng(3)
    found = []
    for _ in range(1500):
        drawn, weight = draw_places(probability, BUCKETS, 16, rng)
        found.append((weight * values.gather(1, drawn)).sum(dim=1))
    assert torch.stack(found).mean(dim=0).tolist() == pytest.approx(truth.tolist(), rel=0.05)


def test_likely_and_unlikely_places_are_both_drawn(scores: torch.Tensor) -> None:
    rng = np.random.default_rng(4)
    drawn = torch.cat([draw_places(scores.exp(), BUCKETS, 30, rng)[0] for _ in range(50)], dim=1)[0]
    order = scores[0].argsort(descending=True)
    assert torch.isin(order[:5], drawn).all()
    assert torch.isin(order[-150:], drawn).float().mean() > 0.5


def test_a_place_nearby_is_drawn_however_unlikely_it_is() -> None:
    scores = torch.zeros(1, PLACES)
    scores[0, 5] = -20.0
    buckets = torch.full((1, PLACES), 5, dtype=torch.uint8)
    buckets[0, 5] = 0
    drawn, weight = draw_places(scores.exp(), buckets, 8, np.random.default_rng(0))
    assert 5 in drawn[0].tolist()
    assert float(weight[drawn == 5].sum()) < 1e-3  # a low weight, unless its score is raised


def test_the_weights_of_a_target_sum_to_one_even_if_nothing_is_left_to_draw() -> None:
    nothing = torch.zeros(2, 5)
    for count in (1, 2, 16):
        drawn, weight = draw_places(nothing, nothing.byte(), count, np.random.default_rng(0))
        assert drawn.shape == weight.shape == (2, count)
        assert weight.sum(dim=1).tolist() == pytest.approx([1, 1])
        assert bool((drawn < 5).all())


def test_one_seed_draws_the_same_places(scores: torch.Tensor) -> None:
    drawn = [draw_places(scores.exp(), BUCKETS, 9, np.random.default_rng(5))[0] for _ in range(2)]
    assert torch.equal(*drawn)
