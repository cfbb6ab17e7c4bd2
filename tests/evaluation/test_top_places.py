import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import softmax

from castpoi.evaluation.top_places import TopPlaces, top_places

SCORES = st.integers(1, 15).flatmap(
    lambda places: st.lists(
        st.lists(st.integers(-3, 4), min_size=places, max_size=places), min_size=1, max_size=5
    ).map(lambda rows: np.array(rows, dtype=np.float32))
)
"""Scores from few levels, so that ties are the rule."""


def test_the_best_places_stand_first_and_equal_ones_by_number() -> None:
    scores = np.array([[1, 5, 3, 5, 3, 3]], dtype=np.float32)
    assert top_places(scores, np.array([0]), most=4).place.tolist() == [[1, 3, 2, 4]]


@settings(max_examples=60, deadline=None)
@given(SCORES, st.integers(1, 12))
def test_the_list_agrees_with_sorting_all_places(scores: NDArray[np.float32], most: int) -> None:
    found = top_places(scores, np.zeros(len(scores), dtype=np.int64), most=most)
    for row, best in zip(scores.tolist(), found.place.tolist(), strict=True):
        ordered = sorted(range(len(row)), key=lambda place: (-row[place], place))
        assert best == ordered[:most]


@settings(max_examples=60, deadline=None)
@given(SCORES, st.data())
def test_the_softmax_runs_over_all_places_and_agrees_with_scipy(
    scores: NDArray[np.float32], data: st.DataObject
) -> None:
    targets = np.array([data.draw(st.integers(0, scores.shape[1] - 1)) for _ in scores])
    found = top_places(scores, targets, most=3)
    whole = softmax(scores.astype(np.float64), axis=1)
    rows = np.arange(len(scores))
    np.testing.assert_allclose(found.target_softmax, whole[rows, targets], rtol=1e-6)
    np.testing.assert_allclose(found.softmax, whole[rows[:, None], found.place], rtol=1e-6)


def test_large_scores_do_not_overflow_and_a_hopeless_target_does_not_vanish() -> None:
    found = top_places(np.array([[3e8, 0]], dtype=np.float32), np.array([1]))
    assert found.softmax.tolist() == [[1, 0]]
    found = top_places(np.array([[200, 0]], dtype=np.float32), np.array([1]))
    assert found.target_softmax[0] == pytest.approx(np.exp(-200.0), rel=1e-6, abs=0)


def test_blocks_laid_end_to_end_are_one() -> None:
    scores = np.random.default_rng(0).normal(size=(5, 30)).astype(np.float32)
    targets = np.arange(5)
    whole = top_places(scores, targets)
    joined = TopPlaces.end_to_end(
        [top_places(scores[:2], targets[:2]), top_places(scores[2:], targets[2:])]
    )
    for name in ("place", "softmax", "target_softmax"):
        np.testing.assert_array_equal(getattr(joined, name), getattr(whole, name))
