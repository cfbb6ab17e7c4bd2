"""Canonical order: packed or not, check-ins stand by user, then instant, then place."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castpoi.checkins import record
from castpoi.checkins.canonical import in_canonical_order

rows = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 10**7), st.integers(0, 9)), min_size=1, max_size=60
)


def columns(
    visits: list[tuple[int, int, int]], unit_us: int
) -> tuple["np.ndarray", "np.ndarray", "np.ndarray"]:
    user, at, place = (np.array(column) for column in zip(*visits, strict=True))
    return user.astype(np.uint32), at.astype(np.int64) * unit_us, place.astype(np.uint32)


@given(visits=rows, unit_us=st.sampled_from([1, 1_000_000]))
@settings(max_examples=60, deadline=None)
def test_packed_check_ins_come_back_sorted_and_unchanged(
    visits: list[tuple[int, int, int]], unit_us: int
) -> None:
    user, at_us, place = columns(visits, unit_us)
    table = in_canonical_order(user, at_us, place, pl.DataFrame())
    found = list(
        zip(
            table[record.USER].to_list(),
            table[record.AT_UTC].to_physical().to_list(),
            table[record.PLACE].to_list(),
            strict=True,
        )
    )
    assert found == sorted((user, at * unit_us, place) for user, at, place in visits)


@pytest.mark.parametrize("span_us", [10**9, 2**62])
def test_numbers_that_do_not_fit_64_bits_are_sorted_all_the_same(span_us: int) -> None:
    user = np.array([3_000_000_000, 0, 3_000_000_000], dtype=np.uint32)
    at_us = np.array([span_us, 5, 7], dtype=np.int64)
    place = np.array([4_000_000_000, 1, 2], dtype=np.uint32)
    table = in_canonical_order(user, at_us, place, pl.DataFrame())
    assert table[record.USER].to_list() == [0, 3_000_000_000, 3_000_000_000]
    assert table[record.PLACE].to_list() == [1, 2, 4_000_000_000]


def test_further_columns_travel_with_their_check_in() -> None:
    user, at_us, place = columns([(1, 9, 0), (0, 5, 2), (1, 3, 1)], 1_000_000)
    more = pl.DataFrame({"offset": [10, 20, 30]})
    table = in_canonical_order(user, at_us, place, more)
    assert table["offset"].to_list() == [20, 30, 10]
