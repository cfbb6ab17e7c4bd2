"""Cleaning steps, worked by hand and against slow loops."""

from collections import Counter
from itertools import pairwise
from typing import Literal

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castpoi.checkins import cleaning, record

HOUR = 3_600_000_000
Row = tuple[int, int, float]
"""User, place, hour."""

rows_of_a_city = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 200)), max_size=60
)
rounds_of_core = st.sampled_from(["once", "twice", "iterate"])


def checkins(rows: list[Row]) -> pl.DataFrame:
    """Check-ins in canonical order."""
    ordered = sorted(rows, key=lambda row: (row[0], row[2], row[1]))
    return pl.DataFrame(
        {
            record.USER: pl.Series([row[0] for row in ordered], dtype=pl.UInt32),
            record.PLACE: pl.Series([row[1] for row in ordered], dtype=pl.UInt32),
            record.AT_UTC: pl.Series(
                [round(row[2] * HOUR) for row in ordered], dtype=pl.Int64
            ).cast(record.INSTANT),
        }
    )


def kept(frame: pl.DataFrame, mask: cleaning.Mask) -> list[Row]:
    left = frame.filter(pl.Series(mask, dtype=pl.Boolean))
    at = left[record.AT_UTC].to_physical() / HOUR
    return list(zip(left[record.USER], left[record.PLACE], at, strict=True))


def test_one_of_equal_rows_is_kept() -> None:
    frame = checkins([(1, 7, 5), (1, 7, 5), (1, 8, 5), (2, 7, 5), (1, 7, 6), (1, 7, 5)])
    mask = cleaning.keep_first_of_duplicates(frame)
    assert kept(frame, mask) == [(1, 7, 5), (1, 8, 5), (1, 7, 6), (2, 7, 5)]


def test_repeats_at_a_place_within_the_time_are_dropped_even_with_another_place_between() -> None:
    frame = checkins([(1, 7, 0), (1, 8, 0.25), (1, 7, 0.5), (1, 7, 1.25), (2, 7, 0.6)])
    mask = cleaning.keep_without_repeats(frame, minutes=30)
    assert kept(frame, mask) == [(1, 7, 0), (1, 8, 0.25), (1, 7, 1.25), (2, 7, 0.6)]


def test_a_chain_of_repeats_leaves_its_first() -> None:
    frame = checkins([(1, 7, 0), (1, 7, 0.4), (1, 7, 0.8), (1, 7, 1.2)])
    assert kept(frame, cleaning.keep_without_repeats(frame, minutes=30)) == [(1, 7, 0)]


def test_the_core_filters_places_then_users_in_each_round() -> None:
    # place 1 has 2 check-ins and goes; user 1 then has 1 and goes; place 0 is left with 2 of 3
    frame = checkins([(0, 0, 1), (0, 0, 2), (1, 0, 3), (1, 1, 4), (0, 1, 5)])
    assert kept(frame, cleaning.keep_core(frame, "once", 3, 2)) == [(0, 0, 1), (0, 0, 2)]
    assert kept(frame, cleaning.keep_core(frame, "twice", 3, 2)) == []
    assert kept(frame, cleaning.keep_core(frame, "iterate", 3, 2)) == []


def slow_core(rows: list[Row], rounds: int, least_place: int, least_user: int) -> list[Row]:
    for _ in range(rounds):
        places = Counter(place for _, place, _ in rows)
        rows = [row for row in rows if places[row[1]] >= least_place]
        users = Counter(user for user, _, _ in rows)
        rows = [row for row in rows if users[row[0]] >= least_user]
    return rows


@given(rows_of_a_city, rounds_of_core, st.integers(1, 6), st.integers(1, 6))
@settings(max_examples=60, deadline=None)
def test_the_core_agrees_with_a_slow_loop(
    rows: list[tuple[int, int, int]],
    rounds: Literal["once", "twice", "iterate"],
    least_place: int,
    least_user: int,
) -> None:
    frame = checkins(list(rows))
    all_rows = kept(frame, np.ones(frame.height, dtype=np.bool_))
    number = {"once": 1, "twice": 2, "iterate": 70}[rounds]
    slow = slow_core(all_rows, number, least_place, least_user)
    assert kept(frame, cleaning.keep_core(frame, rounds, least_place, least_user)) == slow


@given(rows_of_a_city, st.integers(1, 6), st.integers(1, 6))
@settings(max_examples=60, deadline=None)
def test_in_the_iterated_core_every_place_and_user_has_enough(
    rows: list[tuple[int, int, int]], least_place: int, least_user: int
) -> None:
    frame = checkins(list(rows))
    core = frame.filter(pl.Series(cleaning.keep_core(frame, "iterate", least_place, least_user)))
    assert cleaning.keep_core(core, "iterate", least_place, least_user).all()
    assert all(count >= least_place for count in Counter(core[record.PLACE]).values())
    assert all(count >= least_user for count in Counter(core[record.USER]).values())


def test_a_check_in_far_from_both_neighbours_is_isolated() -> None:
    frame = checkins([(1, 0, 0), (1, 1, 24), (1, 2, 48.5), (1, 3, 100), (2, 0, 100), (1, 4, 48.6)])
    mask = cleaning.keep_not_isolated(frame, hours=24)
    assert kept(frame, mask) == [(1, 0, 0), (1, 1, 24), (1, 2, 48.5), (1, 4, 48.6)]


def test_sessions_end_where_the_gap_is_longer_than_allowed() -> None:
    frame = checkins([(1, 0, 0), (1, 1, 24), (1, 2, 48.1), (2, 0, 48.2)])
    assert cleaning.sessions_of(frame, 24).tolist() == [0, 0, 1, 2]


@given(rows_of_a_city, st.integers(1, 48))
@settings(max_examples=60, deadline=None)
def test_sessions_and_isolation_agree_with_a_slow_loop(
    rows: list[tuple[int, int, int]], hours: int
) -> None:
    frame = checkins(list(rows))
    all_rows = kept(frame, np.ones(frame.height, dtype=np.bool_))
    linked = [
        after[0] == before[0] and after[2] - before[2] <= hours
        for before, after in pairwise(all_rows)
    ]
    session, numbers = -1, []
    for at in range(len(all_rows)):
        session += not (at and linked[at - 1])
        numbers.append(session)
    near = [
        (at > 0 and linked[at - 1]) or (at < len(linked) and linked[at])
        for at in range(len(all_rows))
    ]
    assert cleaning.sessions_of(frame, hours).tolist() == numbers
    assert cleaning.keep_not_isolated(frame, hours).tolist() == near


def test_short_sessions_are_dropped() -> None:
    mask = cleaning.keep_long_sessions(np.array([4, 4, 7, 9, 9, 9]), 2)
    assert mask.tolist() == [True, True, False, True, True, True]


def test_later_check_ins_need_a_user_and_a_place_of_train() -> None:
    frame = checkins([(0, 0, 1), (0, 1, 2), (1, 0, 1), (0, 2, 3), (2, 0, 3), (1, 1, 3)])
    is_train = (frame[record.AT_UTC].to_physical() < 3 * HOUR).to_numpy()
    mask = cleaning.keep_seen_in_train(frame, is_train)
    assert kept(frame, mask) == [(0, 0, 1), (0, 1, 2), (1, 0, 1), (1, 1, 3)]


def test_a_step_has_its_counts() -> None:
    frame = checkins([(0, 0, 1), (0, 0, 1), (5, 3, 2)])
    left, counts = cleaning.clean(frame, cleaning.Recipe())
    assert left.height == 2
    assert counts == [cleaning.StepCount("exact duplicates", 3, 2, 2, 2)]
    assert frame.height == 3


@pytest.mark.parametrize("rounds", ["once", "twice", "iterate"])
def test_the_core_of_no_check_ins_is_empty(rounds: Literal["once", "twice", "iterate"]) -> None:
    assert cleaning.keep_core(checkins([]), rounds, 10, 10).tolist() == []
