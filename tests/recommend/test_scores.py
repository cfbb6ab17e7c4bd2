from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from castpoi.core.arrays import log_sum_exp
from castpoi.core.errors import BadScores
from castpoi.recommend.history import History
from castpoi.recommend.scores import PlaceScorer, Scores
from tests.messages import refused
from tests.serving.small_run import small_book


def scores_of(score: Sequence[float], eligible: Sequence[bool]) -> Scores:
    rows = np.array([score], dtype=np.float32)
    return Scores(score=rows, is_eligible=np.array([eligible]), log_total=log_sum_exp(rows))


def test_equal_scores_stand_in_the_order_of_their_places() -> None:
    scores = scores_of([1.0, 3.0, 3.0, 1.0, 3.0], [True] * 5)
    assert scores.best(0, 2).tolist() == [1, 2]
    assert scores.best(0, 4).tolist() == [1, 2, 4, 0]


@given(
    st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=1, max_size=30),
    st.integers(1, 35),
)
def test_the_k_best_of_the_eligible_come_back_whenever_k_exist(
    places: list[tuple[int, bool]], k: int
) -> None:
    scores = scores_of([score for score, _ in places], [eligible for _, eligible in places])
    slow = sorted((-score, number) for number, (score, eligible) in enumerate(places) if eligible)
    assert scores.best(0, k).tolist() == [number for _, number in slow[:k]]


def test_probabilities_of_all_places_sum_to_one_even_of_huge_scores() -> None:
    scores = scores_of([1e4, 1e4 - 1.0, -1e4], [True, False, True])
    chances = scores.probability(0, np.arange(3))
    assert chances.sum() == pytest.approx(1.0)
    assert chances[0] / chances[1] == pytest.approx(np.e, rel=1e-3)


class NoNumbers:
    """A ranker gone wrong."""

    places = 5

    def encode(self, histories: object) -> None:
        pass

    def score(
        self, encoded: None, candidates: object = None
    ) -> "np.ndarray[tuple[int, int], np.dtype[np.float32]]":
        return np.full((1, 5), np.nan, dtype=np.float32)


def test_a_model_gone_wrong_is_told() -> None:
    one = np.zeros(1, dtype=np.int64)
    history = History(place=one, at_us=one, offset_minutes=one)
    with refused(BadScores):
        PlaceScorer(NoNumbers(), small_book()).score([history], [np.ones(5, dtype=bool)], [3])
