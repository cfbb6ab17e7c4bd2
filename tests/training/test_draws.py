"""Draws that stand for all other places: unbiased, and defined where nothing is left."""

import numpy as np
import pytest
import torch

from castpoi.training.draws import draw_places

PLACES = 300
BUCKETS = torch.arange(2 * PLACES).view(2, PLACES).remainder(6).byte()


@pytest.fixture
def scores() -> torch.Tensor:
    draw = torch.Generator().manual_seed(1)
    scores = 3 * torch.randn(2, PLACES, generator=draw)
    scores[:, 7] = -torch.inf  # a place that is read anyway
    return scores


def test_weighed_draws_tell_on_average_what_all_places_would(scores: torch.Tensor) -> None:
    said = torch.randn(2, PLACES, generator=torch.Generator().manual_seed(2)).exp()
    chance = scores.exp()
    is_left = chance > 0
    by_chance = (chance * said).sum(dim=1) / chance.sum(dim=1)
    alike = (is_left * said).sum(dim=1) / is_left.sum(dim=1)
    rng = np.random.default_rng(3)
    told, told_alike = [], []
    for _ in range(1500):
        draws = draw_places(chance, BUCKETS, 16, rng)
        told.append((draws.weight * said.gather(1, draws.place)).sum(dim=1))
        told_alike.append((draws.share * said.gather(1, draws.place)).sum(dim=1))
    assert torch.stack(told).mean(dim=0).tolist() == pytest.approx(by_chance.tolist(), rel=0.05)
    assert torch.stack(told_alike).mean(dim=0).tolist() == pytest.approx(alike.tolist(), rel=0.05)


def test_likely_and_unlikely_places_are_both_seen(scores: torch.Tensor) -> None:
    rng = np.random.default_rng(4)
    drawn = torch.cat(
        [draw_places(scores.exp(), BUCKETS, 30, rng).place for _ in range(50)], dim=1
    )[0]
    order = scores[0].argsort(descending=True)
    assert torch.isin(order[:5], drawn).all()
    assert torch.isin(order[-150:], drawn).float().mean() > 0.5


def test_a_place_nearby_is_seen_however_unlikely_it_is() -> None:
    scores = torch.zeros(1, PLACES)
    scores[0, 5] = -20.0
    buckets = torch.full((1, PLACES), 5, dtype=torch.uint8)
    buckets[0, 5] = 0
    draws = draw_places(scores.exp(), buckets, 8, np.random.default_rng(0))
    assert 5 in draws.place[0].tolist()
    assert (
        float(draws.weight[draws.place == 5].sum()) < 1e-3
    )  # it stands for little, unless it is raised


def test_the_weights_of_a_target_sum_to_one_even_where_nothing_is_left_to_draw() -> None:
    nothing = torch.zeros(2, 5)
    for count in (1, 2, 16):
        draws = draw_places(nothing, nothing.byte(), count, np.random.default_rng(0))
        assert draws.place.shape == draws.weight.shape == draws.share.shape == (2, count)
        assert draws.weight.sum(dim=1).tolist() == pytest.approx([1, 1])
        assert draws.share.sum(dim=1).tolist() == pytest.approx([1, 1])
        assert bool((draws.place < 5).all())


def test_one_seed_draws_the_same_places(scores: torch.Tensor) -> None:
    drawn = [
        draw_places(scores.exp(), BUCKETS, 9, np.random.default_rng(5)).place for _ in range(2)
    ]
    assert torch.equal(*drawn)
