"""Ragged arrays and scores, compared with their plain definitions."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from castpoi.core.arrays import k_best, log_sum_exp, pad_left, ranges


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
