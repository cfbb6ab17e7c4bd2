"""Cleaning steps by hand and against slow loops; and recipes, which are lists of steps."""

import math
from collections import Counter
from itertools import pairwise
from typing import Literal

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castpoi.checkins import cleaning, record
from castpoi.checkins.cleaning import CA, NYC, PUBLISHED, RECIPES, TKY, Recipe, StepCount
from castpoi.checkins.tables import Mask, Tables
from castpoi.core.errors import BadInput, TooFewCheckins
from tests.messages import refused

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


def kept(frame: pl.DataFrame, mask: Mask) -> list[Row]:
    left = frame.filter(pl.Series(mask, dtype=pl.Boolean))
    at = left[record.AT_UTC].to_physical() / HOUR
    return list(zip(left[record.USER], left[record.PLACE], at, strict=True))


def in_parts(frame: pl.DataFrame) -> Tables:
    """The same check-ins in two parts, each with all rows of its users."""
    middle = pl.col(record.USER) < 2
    return Tables([frame.filter(middle), frame.filter(~middle)])


def core_of(
    frame: pl.DataFrame, rounds: cleaning.CoreRounds, min_place: int, min_user: int
) -> Mask:
    keep = cleaning.core_of(in_parts(frame), rounds, min_place, min_user)
    return keep(frame)


def clean(frame: pl.DataFrame, recipe: Recipe) -> tuple[pl.DataFrame, list[StepCount]]:
    """The check-ins left, and the counts; the same in parts and as one."""
    together, counts = cleaning.clean(Tables([frame]), recipe)
    parts, same_counts = cleaning.clean(in_parts(frame), recipe)
    (left,) = together
    assert pl.concat(parts).equals(left)
    assert same_counts == counts
    return left, counts


def test_one_of_equal_rows_is_kept() -> None:
    frame = checkins([(1, 7, 5), (1, 7, 5), (1, 8, 5), (2, 7, 5), (1, 7, 6), (1, 7, 5)])
    mask = cleaning.keep_first_of_duplicates(frame)
    assert kept(frame, mask) == [(1, 7, 5), (1, 8, 5), (1, 7, 6), (2, 7, 5)]


def test_repeats_at_a_place_within_the_time_are_dropped_even_with_another_place_between() -> None:
    frame = checkins([(1, 7, 0), (1, 8, 0.25), (1, 7, 0.5), (1, 7, 1.25), (2, 7, 0.6)])
    mask = cleaning.keep_without_repeats(frame, minutes=30)
    assert kept(frame, mask) == [(1, 7, 0), (1, 8, 0.25), (1, 7, 1.25), (2, 7, 0.6)]


def test_the_core_filters_places_then_users_in_each_round() -> None:
    # place 1 has 2 check-ins and goes; user 1 then has 1 and goes; place 0 is left with 2 of 3
    frame = checkins([(0, 0, 1), (0, 0, 2), (1, 0, 3), (1, 1, 4), (0, 1, 5)])
    assert kept(frame, core_of(frame, "once", 3, 2)) == [(0, 0, 1), (0, 0, 2)]
    assert kept(frame, core_of(frame, "twice", 3, 2)) == []
    assert kept(frame, core_of(frame, "iterate", 3, 2)) == []


def slow_core(rows: list[Row], rounds: int, min_place: int, min_user: int) -> list[Row]:
    for _ in range(rounds):
        places = Counter(place for _, place, _ in rows)
        rows = [row for row in rows if places[row[1]] >= min_place]
        users = Counter(user for user, _, _ in rows)
        rows = [row for row in rows if users[row[0]] >= min_user]
    return rows


@given(rows_of_a_city, rounds_of_core, st.integers(1, 6), st.integers(1, 6))
@settings(max_examples=60, deadline=None)
def test_the_core_agrees_with_a_slow_loop(
    rows: list[tuple[int, int, int]],
    rounds: Literal["once", "twice", "iterate"],
    min_place: int,
    min_user: int,
) -> None:
    frame = checkins(list(rows))
    all_rows = kept(frame, np.ones(frame.height, dtype=np.bool_))
    number = {"once": 1, "twice": 2, "iterate": 70}[rounds]
    slow = slow_core(all_rows, number, min_place, min_user)
    assert kept(frame, core_of(frame, rounds, min_place, min_user)) == slow


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


def test_later_check_ins_need_a_user_and_a_place_of_train() -> None:
    frame = checkins([(0, 0, 1), (0, 1, 2), (1, 0, 1), (0, 2, 3), (2, 0, 3), (1, 1, 3)])

    def is_train(some: pl.DataFrame) -> Mask:
        return (some[record.AT_UTC].to_physical() < 3 * HOUR).to_numpy()

    mask = cleaning.seen_in_train(in_parts(frame), is_train)(frame)
    assert kept(frame, mask) == [(0, 0, 1), (0, 1, 2), (1, 0, 1), (1, 1, 3)]


def test_a_step_has_its_counts() -> None:
    frame = checkins([(0, 0, 1), (0, 0, 1), (5, 3, 2)])
    left, counts = clean(frame, Recipe())
    assert left.height == 2
    assert counts == [cleaning.StepCount("exact duplicates", 3, 2, 2, 2)]
    assert frame.height == 3


# Recipes


def steps_of(recipe: Recipe) -> list[str]:
    """Names of the steps that a recipe runs on check-ins that satisfy all of them."""
    frame = checkins([(user, 0, day * 20 + user / 9) for user in range(3) for day in range(12)])
    published = frame.with_columns(
        pl.lit(0, dtype=pl.UInt32).alias(record.SESSION),
        pl.lit(record.TRAIN).alias(record.SOURCE_PART),
    )
    return [count.step for count in clean(published, recipe)[1]]


def test_the_recipes_of_the_paper_run_its_steps_in_its_order() -> None:
    assert steps_of(NYC) == ["published sessions shorter than 2", "unseen in the published train"]
    assert steps_of(TKY) == [
        "core once, places >= 10, users >= 10",
        "isolated by 24 h",
        "24 h sessions shorter than 2",
        "unseen in the first 80 %",
    ]
    assert steps_of(CA) == ["core twice, places >= 10, users >= 10", *steps_of(TKY)[1:]]
    assert steps_of(PUBLISHED) == ["unseen in the published train"]
    assert list(RECIPES) == ["nyc", "tky", "ca"]


def test_by_default_only_exact_duplicates_are_dropped() -> None:
    assert steps_of(Recipe()) == ["exact duplicates"]
    assert steps_of(Recipe(keep_duplicates=True)) == []


def test_every_step_has_an_option() -> None:
    recipe = Recipe(repeat_minutes=5, core="iterate", drop_isolated_hours=48, min_session=2)
    assert steps_of(recipe) == [
        "exact duplicates",
        "repeats within 5 min",
        "core iterate, places >= 10, users >= 10",
        "isolated by 48 h",
        "24 h sessions shorter than 2",
    ]


def test_a_split_in_time_drops_later_rows_with_a_new_place() -> None:
    # of 12 check-ins the tenth, at hour 9, is the first of the validation part
    rows = [(0, 0, float(hour)) for hour in range(9)] + [(0, 1, 9.0), (0, 0, 10.0), (0, 0, 11.0)]
    left, counts = clean(checkins(rows), Recipe(time_split=True))
    assert left[record.PLACE].to_list() == [0] * 11
    assert counts[-1].checkins_before - counts[-1].checkins_after == 1


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("min_place_checkins", 0), ("min_user_checkins", -3), ("min_session", 0),
        ("repeat_minutes", 0.0), ("drop_isolated_hours", -1.0), ("session_gap_hours", 0.0),
        ("repeat_minutes", math.nan),
    ],
)  # fmt: skip
def test_a_recipe_refuses_nonsense(option: str, value: float) -> None:
    with pytest.raises(BadInput, match=f"{option}=.* is not valid; it must be"):
        Recipe(**{option: value})  # type: ignore[arg-type]


def test_a_step_after_which_nothing_is_left_is_an_error() -> None:
    with refused(TooFewCheckins):
        clean(checkins([(0, 0, 0), (0, 0, 5)]), Recipe(drop_isolated_hours=1))


@pytest.mark.parametrize(
    ("column", "word"), [(record.SESSION, "trajectory_id"), (record.SOURCE_PART, "split")]
)
def test_a_published_recipe_needs_complete_published_columns(column: str, word: str) -> None:
    frame = checkins([(0, 0, 0), (0, 0, 1)]).with_columns(
        pl.Series([0, 0]).alias(record.SESSION),
        pl.Series([record.TRAIN] * 2).alias(record.SOURCE_PART),
    )
    assert clean(frame, NYC)[0].height == 2
    words = f"this source has no complete column '{word}'"
    with pytest.raises(BadInput, match=words):
        clean(frame.drop(column), NYC)
    gap = pl.when(pl.int_range(pl.len()) == 0).then(pl.col(column)).alias(column)
    with pytest.raises(BadInput, match=words):
        clean(frame.with_columns(gap), NYC)
