"""Rich features of the revisit gate: worked by hand, and against a slow count."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from castpoi.model.revisits import Revisits, revisits_of
from tests.model import reference
from tests.model.small import Visit, at, batch_of, histories, small_config, trained_model, walk

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


def told(visits: list[Visit], place: int, window: int = WINDOW) -> list[float]:
    found = revisits_of(histories(visits), window, "rich")
    (features,) = found.features[found.row == place + 1].tolist()
    return list(features)


def test_own_moves_from_here_are_counted_and_shared_out() -> None:
    assert told(WEEK, WORK)[3:5] == pytest.approx([math.log(2), 1 / 2])
    assert told(WEEK, GYM)[3:5] == pytest.approx([math.log(2), 1 / 2])
    assert told(WEEK, HOME)[3:5] == [0.0, 0.0]


def test_a_move_from_before_the_window_is_forgotten() -> None:
    assert told(WEEK, WORK, window=4)[3:5] == [0.0, 0.0]
    assert told(WEEK, GYM, window=4)[3:5] == pytest.approx([math.log(2), 1.0])


def test_hours_since_the_last_visit_there_are_one_after_a_year() -> None:
    assert told(WEEK, GYM)[5] == pytest.approx(math.log(49) / math.log(8761))
    assert told(WEEK, HOME)[5] == 0.0
    year = [(GYM, at("2011-04-09 08:00"), 0), (HOME, at("2012-04-08 08:00"), 0)]
    assert told(year, GYM)[5] == pytest.approx(1.0)


def test_the_hour_of_day_agrees_with_that_of_the_last_visit() -> None:
    assert told(WEEK, GYM)[6] == pytest.approx(1.0)
    assert told(WEEK, WORK)[6] == pytest.approx(math.cos(2 * math.pi / 24))
    assert told(WEEK, HOME)[6] == pytest.approx((1 - 1 + 1) / 3)


def test_the_kind_of_day_agrees_with_that_of_the_last_visit() -> None:
    assert told(WEEK, GYM)[7] == 0.0
    assert told(WEEK, WORK)[7] == 1.0
    assert told(WEEK[:4], WORK)[7] == 0.0  # the last visit is on Saturday


def test_the_clock_is_the_local_one() -> None:
    # 02:00 UTC on Monday is 22:00 on Sunday four hours west
    visits = [(GYM, at("2012-04-07 22:00"), 0), (HOME, at("2012-04-09 02:00"), -240)]
    assert told(visits, GYM)[6:8] == pytest.approx([1.0, 1.0])


def test_a_visit_of_twenty_days_ago_is_worth_a_third() -> None:
    visits = [(GYM, at("2012-04-01 00:00"), 0), (HOME, at("2012-04-21 00:00"), 0)]
    assert told(visits, GYM)[8] == pytest.approx(math.log(1 + 1 / math.e))
    assert told(visits, HOME)[8] == pytest.approx(math.log(2))


def test_the_first_three_are_those_of_the_paper() -> None:
    laid = histories(walk(30, seed=2), [], walk(4, seed=3))
    rich, paper = revisits_of(laid, WINDOW, "rich"), revisits_of(laid, WINDOW)
    assert rich.features.shape[1] == 9
    assert torch.equal(rich.features[:, :3], paper.features)
    assert torch.equal(rich.row, paper.row)


def check(found: Revisits, many: list[list[Visit]], window: int) -> None:
    pairs = zip(found.owner.tolist(), found.row.tolist(), found.features.numpy(), strict=True)
    for owner, row, features in pairs:
        expected = reference.rich_features(many[owner][-window:], row - 1, window)
        np.testing.assert_allclose(features, expected, rtol=1e-5, atol=1e-6)


@given(
    lengths=st.lists(st.integers(0, 40), min_size=1, max_size=4),
    seed=st.integers(0, 1000),
    window=st.integers(1, 30),
)
@settings(max_examples=40, deadline=None)
def test_rich_features_agree_with_a_slow_count(lengths: list[int], seed: int, window: int) -> None:
    many = [walk(length, seed=seed + number) for number, length in enumerate(lengths)]
    check(revisits_of(histories(*many), window, "rich"), many, window)


def test_what_comes_after_the_last_visit_is_not_known() -> None:
    """The features of a history are its own, however it goes on."""
    visits = walk(20, seed=5)
    cut, whole = (revisits_of(histories(each), WINDOW, "rich") for each in (visits[:15], visits))
    assert not torch.equal(cut.features, whole.features)
    check(cut, [visits[:15]], WINDOW)


def test_a_batch_has_the_features_its_model_asks_for() -> None:
    for kind, count in (("paper", 3), ("rich", 9)):
        config = small_config(revisit_features=kind)
        batch = batch_of(config, walk(6), [])
        assert batch.revisits.features.shape[1] == count
        model = trained_model(config)
        assert model.revisit_gate is not None
        assert model.revisit_gate.weigh[2].out_features == count
