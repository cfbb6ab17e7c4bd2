"""Anchors: where the history ends, and the place visited most."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from castpoi.model.anchors import anchors_of
from castpoi.model.known_pairs import known_pairs
from tests.model.small import histories


def rows_of(*places: list[int], window: int = 9) -> list[list[int]]:
    laid = histories(*[[(place, i, 0) for i, place in enumerate(each)] for each in places])
    recent = laid.tail(window)
    rows: list[list[int]] = anchors_of(recent, known_pairs(recent, window)).tolist()
    return rows


def test_anchors_are_rows_of_the_last_visit_and_of_the_most_visited_place() -> None:
    assert rows_of([5, 5, 2, 1]) == [[2, 6]]


def test_of_places_visited_equally_often_the_latest_is_home() -> None:
    assert rows_of([4, 3, 3, 4, 0]) == [[1, 5]]
    assert rows_of([3, 4, 4, 3, 0]) == [[1, 4]]


def test_an_empty_history_has_no_anchors() -> None:
    assert rows_of([], [6], []) == [[0, 0], [7, 7], [0, 0]]


def test_home_is_forgotten_with_the_visits_there() -> None:
    assert rows_of([1, 1, 1, 2, 2, 3], window=3) == [[4, 3]]


@given(
    places=st.lists(st.lists(st.integers(0, 6), max_size=30), min_size=1, max_size=4),
    window=st.integers(1, 12),
)
def test_home_agrees_with_a_plain_count(places: list[list[int]], window: int) -> None:
    expected = []
    for each in places:
        recent = each[-window:]
        latest_first = list(dict.fromkeys(reversed(recent)))
        expected.append(max(latest_first, key=recent.count, default=-1) + 1)
    assert [row[1] for row in rows_of(*places, window=window)] == expected


def test_histories_are_not_mutated() -> None:
    laid = histories([(1, 0, 0), (2, 1, 0)])
    before = laid.place.copy()
    anchors_of(laid, known_pairs(laid, 9))
    np.testing.assert_array_equal(laid.place, before)
