"""Ragged arrays and scores, compared with their plain definitions."""

from datetime import date

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castpoi.core.arrays import k_best, log_sum_exp, pad_left, ranges
from castpoi.core.quantities import counted, day_words, distance_words, duration_words, share_words


def test_ranges_start_at_zero_for_each_length() -> None:
    assert ranges(np.array([2, 0, 3])).tolist() == [0, 1, 0, 1, 2]
    assert ranges(np.array([], dtype=np.int64)).tolist() == []


def test_slices_are_padded_on_the_left_and_cut_to_their_last_indices() -> None:
    begins, ends = np.array([0, 2, 2]), np.array([2, 2, 5])
    indices, is_real = pad_left(begins, ends)
    assert indices.tolist() == [[0, 0, 1], [0, 0, 0], [2, 3, 4]]
    assert is_real.tolist() == [[False, True, True], [False] * 3, [True] * 3]
    assert pad_left(begins, ends, most=2)[0].tolist() == [[0, 1], [0, 0], [3, 4]]
    assert pad_left(begins[1:2], ends[1:2])[1].tolist() == [[False]]


@settings(max_examples=25)
@given(scores=st.lists(st.integers(-3, 3), max_size=12), k=st.integers(0, 14))
def test_the_k_best_are_those_of_a_stable_sort(scores: list[int], k: int) -> None:
    wanted = sorted(range(len(scores)), key=lambda number: -scores[number])[:k]
    assert k_best(np.array(scores, dtype=np.float32), k).tolist() == wanted


def test_minus_infinity_is_the_lowest_score() -> None:
    assert k_best(np.array([-np.inf, 0.0, -np.inf], dtype=np.float32), 2).tolist() == [1, 0]


def test_log_sum_exp_does_not_overflow() -> None:
    found = log_sum_exp(np.array([[1000.0, 1000.0], [-1000.0, -1000.0]], dtype=np.float32))
    np.testing.assert_allclose(found, [1000 + np.log(2), -1000 + np.log(2)])


@pytest.mark.parametrize(
    ("distance_km", "words"),
    [(0, "0 m"), (0.84, "840 m"), (0.9996, "1.0 km"), (1.26, "1.3 km"), (1234.5, "1,234 km")],
)
def test_a_distance_has_the_unit_that_suits_it(distance_km: float, words: str) -> None:
    assert distance_words(distance_km) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.4, "0 s"), (18, "18 s"), (59.7, "1 min"), (1440, "24 min"), (3599, "1.0 h"),
     (13_932, "3.9 h"), (172_440, "47.9 h"), (362_880, "4.2 days")],
)  # fmt: skip
def test_a_duration_has_the_unit_that_suits_it(seconds: float, words: str) -> None:
    assert duration_words(seconds) == words


def test_a_day_has_no_leading_zero_and_a_share_one_decimal() -> None:
    assert day_words(date(2012, 4, 3)) == "3 April 2012"
    assert share_words(0.6421) == "64.2%"


def test_a_missing_value_is_a_dash() -> None:
    assert {distance_words(None), duration_words(None), share_words(None), day_words(None)} == {"–"}


@pytest.mark.parametrize(
    ("count", "noun", "words"),
    [(1, "place", "1 place"), (0, "place", "0 places"), (2000, "check-in", "2,000 check-ins")],
)
def test_a_count_has_a_noun_in_the_right_number(count: int, noun: str, words: str) -> None:
    assert counted(count, noun) == words
