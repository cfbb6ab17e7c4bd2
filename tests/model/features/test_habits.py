"""Habits: worked by hand, and against a slow count, at the end and for every position."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from castpoi.checkins.city import City
from castpoi.checkins.trajectory import Histories
from castpoi.geo.distance import unit_vectors
from castpoi.model.castpoi import new_model
from castpoi.model.features.habits import HABITS
from castpoi.model.features.known import KnownPairs, known_at_the_end
from castpoi.model.terms.revisit import RevisitGate
from castpoi.training.objectives.known_blocks import KnownBlocks
from tests.model.features.slow_habits import habits
from tests.model.small import (
    ALL_PLACES,
    LAT,
    LON,
    Visit,
    at,
    batch_of,
    histories,
    small_config,
    trained_model,
    walk,
)
from tests.training.histories import every_position, prefixes

HOME, WORK, GYM = 0, 1, 2
WINDOW = 9
FRIDAY, SATURDAY, MONDAY = "2012-04-06", "2012-04-07", "2012-04-09"
WEEK = [
    (HOME, at(f"{FRIDAY} 08:00"), 0),
    (WORK, at(f"{FRIDAY} 09:00"), 0),
    (HOME, at(f"{FRIDAY} 20:00"), 0),
    (GYM, at(f"{SATURDAY} 08:00"), 0),
    (HOME, at(f"{MONDAY} 08:00"), 0),
]
"""Home to work and to the gym, once each; the last visit is at home on Monday morning."""


def known(*many: list[Visit], window: int = WINDOW) -> KnownPairs:
    points = unit_vectors(LAT, LON)
    return known_at_the_end(histories(*many).tail(window), points, window=window)


def habits_at(visits: list[Visit], place: int, window: int = WINDOW) -> dict[str, float]:
    found = known(visits, window=window)
    (features,) = found.features[found.place == place].tolist()
    names = [habit.name for habit in HABITS]
    return dict(zip(names, features[3:], strict=True))


def share(value: float) -> float:
    return math.log(1 + 20 * value)


def test_moves_from_here_are_counted_and_shared_out() -> None:
    for place, moves, part in ((WORK, 1, 1 / 2), (GYM, 1, 1 / 2), (HOME, 0, 0)):
        habits = habits_at(WEEK, place)
        assert habits["moves from here"] == pytest.approx(math.log1p(moves))
        assert habits["share of the moves from here"] == pytest.approx(share(part))


def test_a_move_from_before_the_window_does_not_count() -> None:
    assert habits_at(WEEK, WORK, window=4)["moves from here"] == 0.0
    assert habits_at(WEEK, GYM, window=4)["share of the moves from here"] == pytest.approx(share(1))


def test_the_next_move_depends_on_the_way_here() -> None:
    way = [(GYM, 0), (HOME, 1), (WORK, 2), (WORK, 3), (HOME, 4), (GYM, 5), (GYM, 6), (HOME, 7)]
    visits = [(place, at("2012-04-06 08:00") + hours * 3_600_000_000, 0) for place, hours in way]
    by_the_gym, by_work = habits_at(visits, WORK), habits_at(visits, GYM)
    assert by_the_gym["moves from here after the same place before"] == pytest.approx(math.log(2))
    assert by_work["moves from here after the same place before"] == 0.0
    assert by_work["moves from here"] == pytest.approx(math.log(2))


def test_the_time_since_the_last_visit_there_is_one_after_a_year() -> None:
    name = "time since the last visit there"
    assert habits_at(WEEK, GYM)[name] == pytest.approx(math.log(49) / math.log(8761))
    assert habits_at(WEEK, HOME)[name] == 0.0
    year = [(GYM, at("2011-04-09 08:00"), 0), (HOME, at("2012-04-08 08:00"), 0)]
    assert habits_at(year, GYM)[name] == pytest.approx(1.0)


def test_the_hour_of_day_agrees_with_that_of_the_last_visit() -> None:
    assert habits_at(WEEK, GYM)["hour of day"] == pytest.approx(1.0)
    assert habits_at(WEEK, WORK)["hour of day"] == pytest.approx(math.cos(2 * math.pi / 24))
    assert habits_at(WEEK, HOME)["hour of day"] == pytest.approx((1 - 1 + 1) / 3, abs=1e-6)


def test_the_kind_of_day_agrees_with_that_of_the_last_visit() -> None:
    assert habits_at(WEEK, GYM)["kind of day"] == 0.0
    assert habits_at(WEEK, WORK)["kind of day"] == 1.0
    assert habits_at(WEEK[:4], WORK)["kind of day"] == 0.0  # the last visit is on Saturday


def test_the_weight_of_a_visit_is_by_the_hour_of_the_one_that_it_followed() -> None:
    # work followed home at eight in the morning, as it is now; the gym home at eight in the evening
    assert habits_at(WEEK, WORK)["after a similar hour"] == pytest.approx(math.log(2))
    assert habits_at(WEEK, GYM)["after a similar hour"] == pytest.approx(math.log1p(math.exp(-8)))


def test_the_clock_is_the_local_one() -> None:
    # 02:00 UTC on Monday is 22:00 on Sunday four hours west
    habits = habits_at(
        [(GYM, at("2012-04-07 22:00"), 0), (HOME, at("2012-04-09 02:00"), -240)], GYM
    )
    assert (habits["hour of day"], habits["kind of day"]) == pytest.approx((1.0, 1.0))


def test_a_visit_of_twenty_days_ago_is_worth_a_third() -> None:
    visits = [(GYM, at("2012-04-01 00:00"), 0), (HOME, at("2012-04-21 00:00"), 0)]
    assert habits_at(visits, GYM)["recent visits, 20 days"] == pytest.approx(math.log1p(1 / math.e))
    assert habits_at(visits, HOME)["recent visits, 20 days"] == pytest.approx(math.log(2))


def test_the_first_three_features_are_those_of_the_paper() -> None:
    many = [walk(30, seed=2), [], walk(4, seed=3)]
    found = known(*many)
    paper = known_at_the_end(histories(*many).tail(WINDOW), window=WINDOW)
    np.testing.assert_array_equal(found.features[:, :3], paper.features)
    np.testing.assert_array_equal(found.place, paper.place)


def check(found: KnownPairs, many: list[list[Visit]], window: int) -> None:
    pairs = zip(found.owner.tolist(), found.place.tolist(), found.features, strict=True)
    for owner, place, features in pairs:
        expected = habits(many[owner][-window:], place)
        np.testing.assert_allclose(features[3:], expected, rtol=1e-4, atol=1e-5)


@given(
    lengths=st.lists(st.integers(0, 40), min_size=1, max_size=4),
    seed=st.integers(0, 1000),
    window=st.integers(1, 30),
)
@settings(max_examples=40, deadline=None)
def test_habits_agree_with_a_slow_count(lengths: list[int], seed: int, window: int) -> None:
    many = [walk(length, seed=seed + number) for number, length in enumerate(lengths)]
    check(known(*many, window=window), many, window)


def test_what_comes_after_the_last_visit_is_not_known() -> None:
    """The habits of a history do not depend on later visits."""
    visits = walk(20, seed=5)
    cut, whole = (known(each) for each in (visits[:15], visits))
    assert not np.array_equal(cut.features, whole.features)
    check(cut, [visits[:15]], WINDOW)


def test_a_batch_has_the_features_of_its_model() -> None:
    for kind, count in (("paper", 3), ("habits", 3 + len(HABITS))):
        config = small_config(revisit_features=kind)
        batch = batch_of(config, walk(6), [])
        assert batch.known.features.shape[1] == count
        gate = trained_model(config).cheap_terms["revisit"]
        assert isinstance(gate, RevisitGate)
        assert gate.weigh[2].out_features == count


def test_habits_are_not_counted_for_a_model_without_a_revisit_gate() -> None:
    with_gate, without = (
        batch_of(small_config("next", revisit_gate=has_gate), walk(6)) for has_gate in (True, False)
    )
    assert with_gate.known.features.shape[1] == 3 + len(HABITS)
    assert without.known.features.shape[1] == 3


def test_deep_revisits_start_as_the_gate_of_the_paper() -> None:
    configs = (small_config(deep_revisits=deep) for deep in (True, False))
    deep, flat = (new_model(config=each, lat=LAT, lon=LON, seed=3) for each in configs)
    batch = batch_of(small_config(), walk(9), walk(2, seed=1))
    with torch.inference_mode():
        found, expected = (
            model.eval().term_values(model.encode(batch), ALL_PLACES)["revisit"]
            for model in (deep, flat)
        )
    assert found.count_nonzero()
    assert torch.equal(found, expected)


def of_every_position(
    laid: Histories, window: int, points: NDArray[np.float64] | None = None
) -> KnownPairs:
    return KnownBlocks(laid, points, window=window).of(every_position(laid))


@given(
    lengths=st.lists(st.integers(1, 25), min_size=1, max_size=3),
    seed=st.integers(0, 1000),
    window=st.integers(1, 30),
    at_once=st.integers(1, 9),
)
@settings(max_examples=25, deadline=None)
def test_habits_of_every_position_agree_with_a_slow_count(
    lengths: list[int], seed: int, window: int, at_once: int
) -> None:
    many = [walk(length, seed=seed + number) for number, length in enumerate(lengths)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("castpoi.training.objectives.known_blocks.POSITIONS_AT_ONCE", at_once)
        found = of_every_position(histories(*many), window, unit_vectors(LAT, LON))
    check(found, [visits[: end + 1] for visits in many for end in range(len(visits))], window)


@pytest.mark.parametrize("window", [12, 512])
@pytest.mark.parametrize("known_time", [False, True])
def test_habits_of_every_position_are_those_of_every_prefix(
    town: City, window: int, known_time: bool
) -> None:
    laid, points = town.train, unit_vectors(town.lat, town.lon)
    alone = prefixes(laid)
    if known_time:
        laid = replace(laid, next_at_us=laid.at_us[laid.bounds[1:] - 1])
        alone = replace(alone, next_at_us=laid.following_us)
    found = of_every_position(laid, window, points)
    expected = known_at_the_end(alone.tail(window), points, window=window)
    order = np.lexsort((found.place, found.owner))
    np.testing.assert_array_equal(found.owner[order], expected.owner)
    np.testing.assert_array_equal(found.place[order], expected.place)
    np.testing.assert_allclose(found.features[order], expected.features, rtol=1e-4, atol=1e-5)


def test_habits_that_do_not_depend_on_now_are_the_same_with_known_time(town: City) -> None:
    laid, points = town.train, unit_vectors(town.lat, town.lon)
    timed = replace(laid, next_at_us=laid.at_us[laid.bounds[1:] - 1])
    known, unknown = (of_every_position(each, 512, points).features for each in (timed, laid))
    differs = (known != unknown).any(axis=0)[3:]
    same = {habit.name for habit, differs in zip(HABITS, differs, strict=True) if not differs}
    assert same == {
        "share of all visits",
        "moves from here",
        "share of the moves from here",
        "moves from here after the same place before",
        "two visits after the place before here",
        "after a place nearby",
        "distance from here",
        "time of the move there",
        "is here",
        "number of visits",
        "places per visit",
        "share of visits here",
    }
