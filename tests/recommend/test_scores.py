import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from castpoi.checkins.trajectory import Histories
from castpoi.core.errors import BadInput, BadScores
from castpoi.methods.ranker import Found
from castpoi.recommend.recommender import Recommender
from castpoi.recommend.request import Request, Visits
from castpoi.recommend.resolve import history_of
from castpoi.recommend.scores import (
    Shortlist,
    best_places,
    shortlist_scores,
    shortlist_size,
    with_few_of_a_group,
)
from tests.contract import odd_city
from tests.messages import refused
from tests.serving.small_run import DAY, small_book, small_ranker

ALL = np.ones((3, 5), dtype=np.bool_)


def best_of(score: Sequence[float], eligible: Sequence[bool], k: int) -> Found:
    scores = np.array([score], dtype=np.float32)
    (found,) = best_places(scores, np.array([eligible]), [k])
    assert found.score.tolist() == scores[0, found.place].tolist()
    return found


def histories() -> Histories:
    own = [history_of(Visits.of(DAY[:count]), small_book()) for count in (7, 3, 5)]
    return Histories.concat(own)


def test_equal_scores_are_in_the_order_of_their_places() -> None:
    scores = [1.0, 3.0, 3.0, 1.0, 3.0]
    assert best_of(scores, [True] * 5, 2).place.tolist() == [1, 2]
    assert best_of(scores, [True] * 5, 4).place.tolist() == [1, 2, 4, 0]


@settings(max_examples=25)
@given(
    st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=1, max_size=30),
    st.integers(1, 35),
)
def test_the_k_best_of_the_eligible_places_are_found(
    places: list[tuple[int, bool]], k: int
) -> None:
    best = best_of([score for score, _ in places], [eligible for _, eligible in places], k)
    slow = sorted((-score, number) for number, (score, eligible) in enumerate(places) if eligible)
    assert best.place.tolist() == [number for _, number in slow[:k]]


def test_probabilities_of_all_places_sum_to_one_even_of_huge_scores() -> None:
    probabilities = best_of([1e4, 1e4 - 1.0, -1e4], [True] * 3, 3).probability
    assert probabilities.sum() == pytest.approx(1.0)
    assert probabilities[0] / probabilities[1] == pytest.approx(np.e, rel=1e-3)


def test_scores_that_are_not_finite_are_an_error(
    recommender: Recommender, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> NDArray[np.float32]:
        return np.full((1, 5), np.nan, dtype=np.float32)

    monkeypatch.setattr(recommender.ranker, "score", broken)
    with refused(BadScores):
        recommender.recommend(DAY)


@pytest.mark.parametrize(
    ("setting", "places", "size"),
    [
        *(("all", 9_000, None), (None, 2_000, None), (None, 2_001, 384)),
        *((256, 257, 256), (256, 256, None)),
    ],
)
def test_large_vocabularies_have_a_shortlist_by_default(
    setting: Shortlist | None, places: int, size: int | None
) -> None:
    assert shortlist_size(setting, places=places) == size


def test_a_shortlist_without_places_is_rejected() -> None:
    with refused(BadInput):
        shortlist_size(0, places=9)


@pytest.mark.parametrize("size", [2, 4])
def test_the_places_of_a_shortlist_are_scored_exactly(size: int) -> None:
    ranker = small_ranker(odd_city())
    state = ranker.encode(histories())
    score, listed = shortlist_scores(ranker, state, ALL, size)
    assert listed.sum(axis=1).tolist() == [size] * 3
    np.testing.assert_allclose(score[listed], ranker.score(state)[listed], atol=1e-5)


def test_only_allowed_places_are_on_the_shortlist() -> None:
    ranker = small_ranker(odd_city())
    allowed = np.tile([False, False, True, True, False], (3, 1))
    _, listed = shortlist_scores(ranker, ranker.encode(histories()), allowed, 2)
    np.testing.assert_array_equal(listed, allowed)


def test_a_large_k_does_not_change_the_shortlist_of_other_requests(
    recommender: Recommender,
) -> None:
    short = Recommender(recommender.run, recommender.places, shortlist=2)
    requests = [Request.of(history=DAY, k=k) for k in (1, 4)]
    small, large = short.recommend_many(requests)
    assert len(large) == 4
    (alone,) = short.recommend_many(requests[:1])
    assert small.recommendations[0].place == alone.recommendations[0].place
    probability = alone.recommendations[0].probability
    assert small.recommendations[0].probability == pytest.approx(probability, abs=1e-6)
    assert probability != pytest.approx(large.recommendations[0].probability, abs=1e-6)


def test_the_other_terms_under_the_softmax_are_estimated_from_the_mean_of_the_reader() -> None:
    ranker = small_ranker(odd_city())
    state = ranker.encode(histories())
    exact, cheap = ranker.score(state), ranker.forecast(state)
    score, listed = shortlist_scores(ranker, state, ALL, 1)
    # every place of so small a city is among those spread evenly: the mean is over all places
    for row in range(3):
        mean = np.mean(np.exp(exact[row] - cheap[row]))
        total = sum(
            math.exp(exact[row, place])
            if listed[row, place]
            else math.exp(cheap[row, place]) * mean
            for place in range(5)
        )
        best = best_places(score, listed, [1] * 3)[row]
        expected = math.exp(exact[row, best.place[0]]) / total
        assert best.probability[0] == pytest.approx(expected, rel=1e-4)


def test_a_group_has_at_most_its_number_of_places_in_the_order_of_scores() -> None:
    found = best_of([9, 8, 7, 6, 5, 4], [True] * 5 + [False], 6)
    group = np.array([0, 0, -1, -1, 1, 1])
    for most, k, wanted in [(1, 10, [0, 2, 3, 4]), (1, 2, [0, 2]), (2, 10, [0, 1, 2, 3, 4])]:
        few = with_few_of_a_group(found, k, group=group, most=most)
        assert few.place.tolist() == wanted
