"""Recipes: which steps run, in which order, and what they refuse."""

import math

import polars as pl
import pytest

from castpoi.checkins import record
from castpoi.checkins.cleaning import CA, NYC, PUBLISHED, RECIPES, TKY, Recipe, clean
from castpoi.core.errors import BadInput, TooFewCheckins
from tests.checkins.test_cleaning import checkins
from tests.messages import refused


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
