"""Splits lose nothing, see no future, and set aside what train does not know."""

from collections.abc import Sequence
from typing import get_args

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castpoi.checkins import record
from castpoi.checkins.split import SplitKind, parts_of, split_checkins, time_cuts
from castpoi.checkins.tables import Tables
from castpoi.core.errors import TooFewCheckins
from tests.messages import refused

TRAIN, VALIDATION, TEST, LEFT_OUT = range(4)
City = list[tuple[int, int, int]]
"""(user, instant, place) in canonical order."""

cities = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 30), st.integers(0, 5)), max_size=60
).map(sorted)


def columns(city: Sequence[tuple[int, int, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(user, place, instant)."""
    user, at, place = np.array(city, dtype=np.int64).reshape(-1, 3).T
    return user, place, at


def table(user: np.ndarray, place: np.ndarray, at: np.ndarray) -> pl.DataFrame:
    codes = {record.USER: user, record.PLACE: place}
    columns = {name: pl.Series(each, dtype=pl.UInt32) for name, each in codes.items()}
    return pl.DataFrame({**columns, record.AT_UTC: pl.Series(at, dtype=pl.Int64)})


def split_in_parts(kind: SplitKind, checkins: pl.DataFrame) -> np.ndarray:
    """The split of check-ins; the same in two parts as in one."""
    (whole,) = parts_of(kind, Tables([checkins]))
    middle = pl.col(record.USER) < 2
    two = parts_of(kind, Tables([checkins.filter(middle), checkins.filter(~middle)]))
    assert np.concatenate(two).tolist() == whole.tolist()
    return whole


def leave_one_out(user: np.ndarray, place: np.ndarray) -> np.ndarray:
    return split_in_parts("leave-one-out", table(user, place, np.arange(len(user))))


def chronological(user: np.ndarray, place: np.ndarray, at: np.ndarray) -> np.ndarray:
    return split_in_parts("chronological", table(user, place, at))


def test_the_last_visit_is_test_the_one_before_it_validation() -> None:
    user = np.array([0, 0, 0, 0, 1, 1, 1])
    place = np.array([5, 6, 5, 6, 6, 5, 5])
    assert leave_one_out(user, place).tolist() == [
        *(TRAIN, TRAIN, VALIDATION, TEST),
        *(TRAIN, VALIDATION, TEST),
    ]


def test_a_user_with_two_check_ins_is_left_out() -> None:
    user, place = np.array([0, 0, 1, 1, 1]), np.zeros(5, dtype=np.int64)
    assert leave_one_out(user, place).tolist() == [LEFT_OUT, LEFT_OUT, TRAIN, VALIDATION, TEST]


def test_a_target_at_a_place_that_train_lacks_is_left_out() -> None:
    user, place = np.zeros(4, dtype=np.int64), np.array([1, 1, 2, 1])
    assert leave_one_out(user, place).tolist() == [TRAIN, TRAIN, LEFT_OUT, TEST]


def test_places_of_left_out_users_are_not_known_to_train() -> None:
    user, place = np.array([0, 0, 1, 1, 1]), np.array([9, 9, 1, 1, 9])
    assert leave_one_out(user, place).tolist() == [
        *(LEFT_OUT, LEFT_OUT),
        *(TRAIN, VALIDATION, LEFT_OUT),
    ]


def test_equal_instants_are_never_on_both_sides_of_a_cut() -> None:
    at = np.array([0, 1, 2, 3, 4, 5, 6, 7, 7, 7])
    assert time_cuts(at) == (7, 7)
    one = np.zeros(10, dtype=np.int64)
    assert chronological(one, one, at).tolist() == [TRAIN] * 7 + [TEST] * 3


@given(cities)
@settings(max_examples=80, deadline=None)
def test_leave_one_out_has_every_check_in_once_and_no_train_after_a_target(city: City) -> None:
    user, place, at = columns(city)
    part = leave_one_out(user, place)
    assert len(part) == len(city)
    assert ((part >= TRAIN) & (part <= LEFT_OUT)).all()
    for one in np.unique(user):
        mine = part[user == one]
        if len(mine) < 3:
            assert (mine == LEFT_OUT).all()
            continue
        assert (mine[:-2] == TRAIN).all()
        assert mine[-2] in (VALIDATION, LEFT_OUT)
        assert mine[-1] in (TEST, LEFT_OUT)
        when = at[user == one]
        assert (when[:-1] <= when[-1]).all()
    _assert_targets_are_known(part, place)


@given(cities.filter(bool))
@settings(max_examples=80, deadline=None)
def test_a_split_in_time_has_every_check_in_once_and_no_train_after_a_target(city: City) -> None:
    user, place, at = columns(city)
    part = chronological(user, place, at)
    assert len(part) == len(city)
    first, second = time_cuts(at)
    assert first <= second
    assert (at[part == TRAIN] < first).all()
    assert ((at[part == VALIDATION] >= first) & (at[part == VALIDATION] < second)).all()
    assert (at[part == TEST] >= second).all()
    assert (part[at < first] == TRAIN).all()
    _assert_targets_are_known(part, place)
    _assert_targets_are_known(part, user)
    # who is left out is left out for a reason
    unknown = ~(np.isin(place, place[part == TRAIN]) & np.isin(user, user[part == TRAIN]))
    assert (unknown[part == LEFT_OUT]).all()


def _assert_targets_are_known(part: np.ndarray, codes: np.ndarray) -> None:
    known = set(codes[part == TRAIN].tolist())
    assert set(codes[(part == VALIDATION) | (part == TEST)].tolist()) <= known


@pytest.mark.parametrize("kind", get_args(SplitKind))
def test_a_city_without_a_test_target_is_refused(kind: SplitKind) -> None:
    given = pl.Series(record.SOURCE_PART, ["train", "test"] * 2)
    rows = table(np.arange(4), np.arange(4), np.arange(4)).with_columns(given)
    with refused(TooFewCheckins):
        split_checkins(kind, Tables([rows]))
