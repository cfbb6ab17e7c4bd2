"""The index finds exactly the places that scoring all of them would find."""

from typing import Any

import numpy as np
import pytest
import torch

from castpoi.checkins.trajectory import Histories
from castpoi.core.arrays import k_best, log_sum_exp
from castpoi.geo.distance import unit_vectors
from castpoi.model import index
from castpoi.model.castpoi import new_model
from castpoi.model.ranker import CastPoiRanker
from castpoi.model.windows import BatchBuilder
from tests.model.small import small_config

PLACES, K = 3_003, 10
"""Enough for 47 blocks of 64, of which the last is not full."""


@pytest.fixture(scope="module")
def ranker() -> CastPoiRanker:
    return ranker_of()


def ranker_of(**changes: Any) -> CastPoiRanker:
    """A model of places in some towns, with weights as large as after training."""
    rng = np.random.default_rng(3)
    town = rng.normal([40.7, -74.0], 0.8, size=(9, 2))[rng.integers(9, size=PLACES)]
    lat, lon = (town + rng.normal(0, 0.02, size=town.shape)).T
    config = small_config("next", **changes)
    model = new_model(config=config, lat=lat, lon=lon, seed=3)
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn(weight.shape, generator=generator), alpha=0.3)
        model.place.weight.mul_(0.3)
        model.place.weight[0] = 0.0
    return CastPoiRanker(model, BatchBuilder(config=config, lat=lat, lon=lon))


def some_histories(count: int = 8) -> Histories:
    rng = np.random.default_rng(5)
    lengths = rng.integers(1, 40, size=count)
    total = int(lengths.sum())
    return Histories(
        place=rng.integers(PLACES, size=total),
        at_us=1_333_000_000_000_000 + np.arange(total) * 7_000_000_000,
        offset_minutes=np.zeros(total, dtype=np.int64),
        bounds=np.r_[0, np.cumsum(lengths)],
    )


def everywhere(histories: Histories) -> np.ndarray[Any, Any]:
    return np.ones((len(histories), PLACES), dtype=np.bool_)


def check(ranker: CastPoiRanker, is_allowed: np.ndarray[Any, Any], k: int = K) -> None:
    encoded = ranker.encode(some_histories())
    scores = ranker.score(encoded)
    totals = log_sum_exp(scores)
    for row, found in enumerate(ranker.best(encoded, is_allowed, k)):
        numbers = np.flatnonzero(is_allowed[row])
        expected = numbers[k_best(scores[row, numbers], k)]
        np.testing.assert_array_equal(found.place, expected)
        np.testing.assert_allclose(found.score, scores[row, expected], atol=1e-4)
        assert found.log_total == pytest.approx(totals[row], abs=0.05)


@pytest.mark.parametrize("parts", [{}, {"distance_gate": False}, {"revisit_gate": False}])
def test_the_best_places_and_their_scores_are_those_of_scoring_all(parts: dict[str, Any]) -> None:
    check(ranker_of(**parts), everywhere(some_histories()))


@pytest.mark.parametrize("few", [0, 16_384])
@pytest.mark.parametrize("share", [0.5, 0.02])
def test_filters_apply_before_the_best_are_taken(
    ranker: CastPoiRanker, monkeypatch: pytest.MonkeyPatch, share: float, few: int
) -> None:
    monkeypatch.setattr(index, "_DIRECT", few)  # by bounds, and all allowed places at once
    is_allowed = np.random.default_rng(1).random((8, PLACES)) < share
    check(ranker, is_allowed)


def test_places_that_nobody_would_choose_are_found_if_no_other_is_allowed(
    ranker: CastPoiRanker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "_DIRECT", 0)
    scores = ranker.score(ranker.encode(some_histories()))
    check(ranker, scores < np.quantile(scores, 0.2, axis=1, keepdims=True))


def test_fewer_places_are_found_if_fewer_are_allowed(ranker: CastPoiRanker) -> None:
    is_allowed = np.zeros((8, PLACES), dtype=np.bool_)
    is_allowed[:, [7, 2_999, 3_002]] = True
    check(ranker, is_allowed)


def test_equal_scores_are_ordered_by_place_number(ranker: CastPoiRanker) -> None:
    model = ranker.model
    with torch.no_grad():
        weights = [weight.clone() for weight in model.parameters()]
        for weight in model.parameters():
            weight.zero_()
        encoded = (equal := CastPoiRanker(model, ranker.builder)).encode(some_histories())
        (first, *_) = equal.best(encoded, everywhere(some_histories()), K)
        for weight, before in zip(model.parameters(), weights, strict=True):
            weight.copy_(before)
    np.testing.assert_array_equal(first.place, np.arange(K))


def test_few_places_are_scored_if_near_places_score_higher(
    ranker: CastPoiRanker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "_HEAD", 4)
    monkeypatch.setattr(index, "_DRAWN", 64)
    monkeypatch.setattr(index, "_REGION", 128)
    table, points = ranker.scorer.table, unit_vectors(ranker.builder.lat, ranker.builder.lon)
    places = index.PlaceIndex(table.vectors[1:], table.popularity[1:], points)
    scored: list[int] = []
    scores = index.PlaceIndex.scores

    def counted(self: index.PlaceIndex, query: index.Query, place: Any) -> Any:
        scored.append(len(place))
        return scores(self, query, place)

    monkeypatch.setattr(index.PlaceIndex, "scores", counted)
    query = index.Query(
        vector=np.full(8, 0.1, dtype=np.float32),
        anchors=np.array([5]),
        weights=np.linspace(6, -6, 14, dtype=np.float32)[None],
        known=np.array([5, 9]),
        added=np.array([1, 2], dtype=np.float32),
    )
    places.best(query, K)
    assert sum(scored) < 0.3 * PLACES
