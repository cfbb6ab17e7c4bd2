"""Habits: worked by hand, and against a slow count."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from castpoi.model.distance_buckets import unit_vectors
from castpoi.model.habits import HABITS
from castpoi.model.known_pairs import known_pairs
from castpoi.model.revisits import Revisits, revisits_of
from tests.model.slow_habits import habits
from tests.model.small import (
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


def counted(*many: list[Visit], window: int = WINDOW) -> Revisits:
    recent = histories(*many).tail(window)
    points = unit_vectors(LAT, LON).numpy()
    return revisits_of(recent, known_pairs(recent, window), window, points)


def told(visits: list[Visit], place: int, window: int = WINDOW) -> dict[str, float]:
    found = counted(visits, window=window)
    (features,) = found.features[found.row == place + 1].tolist()
    return dict(zip(HABITS, features[3:], strict=True))


def share(value: float) -> float:
    return math.log(1 + 20 * value)


def test_moves_from_here_are_counted_and_shared_out() -> None:
    for place, moves, part in ((WORK, 1, 1 / 2), (GYM, 1, 1 / 2), (HOME, 0, 0)):
        habits = told(WEEK, place)
        assert habits["moves from here"] == pytest.approx(math.log1p(moves))
        assert habits["share of the moves from here"] == pytest.approx(share(part))


def test_a_move_from_before_the_window_is_forgotten() -> None:
    assert told(WEEK, WORK, window=4)["moves from here"] == 0.0
    assert told(WEEK, GYM, window=4)["share of the moves from here"] == pytest.approx(share(1))


def test_the_way_here_tells_where_it_goes_on() -> None:
    way = [(GYM, 0), (HOME, 1), (WORK, 2), (WORK, 3), (HOME, 4), (GYM, 5), (GYM, 6), (HOME, 7)]
    visits = [(place, at("2012-04-06 08:00") + hours * 3_600_000_000, 0) for place, hours in way]
    by_the_gym, by_work = told(visits, WORK), told(visits, GYM)
    assert by_the_gym["moves from here, by the same way here"] == pytest.approx(math.log(2))
    assert by_work["moves from here, by the same way here"] == 0.0
    assert by_work["moves from here"] == pytest.approx(math.log(2))


def test_the_time_since_the_last_visit_there_is_one_after_a_year() -> None:
    name = "time since the last visit there"
    assert told(WEEK, GYM)[name] == pytest.approx(math.log(49) / math.log(8761))
    assert told(WEEK, HOME)[name] == 0.0
    year = [(GYM, at("2011-04-09 08:00"), 0), (HOME, at("2012-04-08 08:00"), 0)]
    assert told(year, GYM)[name] == pytest.approx(1.0)


def test_the_hour_of_day_agrees_with_that_of_the_last_visit() -> None:
    assert told(WEEK, GYM)["hour of day"] == pytest.approx(1.0)
    assert told(WEEK, WORK)["hour of day"] == pytest.approx(math.cos(2 * math.pi / 24))
    assert told(WEEK, HOME)["hour of day"] == pytest.approx((1 - 1 + 1) / 3, abs=1e-6)


def test_the_kind_of_day_agrees_with_that_of_the_last_visit() -> None:
    assert told(WEEK, GYM)["kind of day"] == 0.0
    assert told(WEEK, WORK)["kind of day"] == 1.0
    assert told(WEEK[:4], WORK)["kind of day"] == 0.0  # the last visit is on Saturday


def test_a_visit_is_judged_by_the_hour_of_the_one_that_it_followed() -> None:
    # work followed home at eight in the morning, as it is now; the gym home at eight in the evening
    assert told(WEEK, WORK)["after a like hour"] == pytest.approx(math.log(2))
    assert told(WEEK, GYM)["after a like hour"] == pytest.approx(math.log1p(math.exp(-8)))


def test_the_clock_is_the_local_one() -> None:
    # 02:00 UTC on Monday is 22:00 on Sunday four hours west
    habits = told([(GYM, at("2012-04-07 22:00"), 0), (HOME, at("2012-04-09 02:00"), -240)], GYM)
    assert (habits["hour of day"], habits["kind of day"]) == pytest.approx((1.0, 1.0))


def test_a_visit_of_twenty_days_ago_is_worth_a_third() -> None:
    visits = [(GYM, at("2012-04-01 00:00"), 0), (HOME, at("2012-04-21 00:00"), 0)]
    assert told(visits, GYM)["fresh visits, 20 days"] == pytest.approx(math.log1p(1 / math.e))
    assert told(visits, HOME)["fresh visits, 20 days"] == pytest.approx(math.log(2))


def test_the_first_three_features_are_those_of_the_paper() -> None:
    many = [walk(30, seed=2), [], walk(4, seed=3)]
    found = counted(*many)
    recent = histories(*many).tail(WINDOW)
    paper = revisits_of(recent, known_pairs(recent, WINDOW), WINDOW)
    assert torch.equal(found.features[:, :3], paper.features)
    assert torch.equal(found.row, paper.row)


def check(found: Revisits, many: list[list[Visit]], window: int) -> None:
    pairs = zip(found.owner.tolist(), found.row.tolist(), found.features.numpy(), strict=True)
    for owner, row, features in pairs:
        expected = habits(many[owner][-window:], row - 1)
        np.testing.assert_allclose(features[3:], expected, rtol=1e-4, atol=1e-5)


@given(
    lengths=st.lists(st.integers(0, 40), min_size=1, max_size=4),
    seed=st.integers(0, 1000),
    window=st.integers(1, 30),
)
@settings(max_examples=40, deadline=None)
def test_habits_agree_with_a_slow_count(lengths: list[int], seed: int, window: int) -> None:
    many = [walk(length, seed=seed + number) for number, length in enumerate(lengths)]
    check(counted(*many, window=window), many, window)


def test_what_comes_after_the_last_visit_is_not_known() -> None:
    """The habits of a history are its own, however it goes on."""
    visits = walk(20, seed=5)
    cut, whole = (counted(each) for each in (visits[:15], visits))
    assert not torch.equal(cut.features, whole.features)
    check(cut, [visits[:15]], WINDOW)


def test_a_batch_has_the_features_its_model_asks_for() -> None:
    for kind, count in (("paper", 3), ("habits", 3 + len(HABITS))):
        config = small_config(revisit_features=kind)
        batch = batch_of(config, walk(6), [])
        assert batch.revisits.features.shape[1] == count
        model = trained_model(config)
        assert model.revisit_gate is not None
        assert model.revisit_gate.weigh[2].out_features == count


def test_habits_are_not_counted_for_a_model_without_a_revisit_gate() -> None:
    with_gate, without = (
        batch_of(small_config("next", revisit_gate=has_gate), walk(6)) for has_gate in (True, False)
    )
    assert with_gate.revisits.features.shape[1] == 3 + len(HABITS)
    assert without.revisits.features.shape[1] == 3


def test_deep_revisits_begin_as_the_gate_of_the_paper() -> None:
    from castpoi.model.castpoi import new_model

    configs = (small_config(deep_revisits=deep) for deep in (True, False))
    deep, flat = (new_model(config=each, lat=LAT, lon=LON, seed=3) for each in configs)
    batch = batch_of(small_config(), walk(9), walk(2, seed=1))
    with torch.inference_mode():
        said, expected = (model.eval().revisit(model.encode(batch)) for model in (deep, flat))
    assert said.count_nonzero()
    assert torch.equal(said, expected)
