"""Canonical order by packed numbers is the order of a plain sort."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castpoi.checkins import record
from castpoi.checkins.canonical import in_canonical_order

numbers = st.one_of(st.integers(0, 3), st.integers(0, 2**20), st.integers(0, 2**32 - 1))
seconds = st.integers(-(10**9), 2 * 10**9).map(lambda second: second * 1_000_000)
instants = st.one_of(seconds, st.integers(-(10**15), 10**15), st.just(0))
rows_of_a_city = st.lists(st.tuples(numbers, instants, numbers), max_size=30)


def ordered(rows: list[tuple[int, int, int]], more: pl.DataFrame) -> list[tuple[object, ...]]:
    user, at, place = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    table = in_canonical_order(user.astype(np.uint32), at, place.astype(np.uint32), more)
    assert table[record.AT_UTC].dtype == record.INSTANT
    plain = table.with_columns(pl.col(record.AT_UTC).to_physical())
    return plain.select(record.USER, record.AT_UTC, record.PLACE, *more.columns).rows()


@given(rows_of_a_city)
@settings(max_examples=100, deadline=None)
def test_check_ins_are_sorted_by_user_instant_and_place(rows: list[tuple[int, int, int]]) -> None:
    assert ordered(rows, pl.DataFrame()) == sorted(rows)


@pytest.mark.parametrize(
    "rows",
    [
        [(2**32 - 1, 0, 2**32 - 1), (0, 0, 0)],  # just fits: no bits for the time
        [(2**32 - 1, 1, 2**32 - 1), (0, 0, 0)],  # a bit too many
        [(1, -5_000_000, 3), (1, -6_000_000, 4), (0, 7_000_000, 0)],
        [(1, 1, 3), (1, 0, 4)],
    ],
)
def test_numbers_at_the_edge_of_64_bits_are_kept(rows: list[tuple[int, int, int]]) -> None:
    assert ordered(rows, pl.DataFrame()) == sorted(rows)
