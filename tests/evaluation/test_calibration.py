import math

import numpy as np
import pytest

from castpoi.core.errors import BadInput
from castpoi.evaluation.calibration import calibration, reliability
from castpoi.evaluation.evaluate import evaluate
from tests.cities import small_city
from tests.contract import odd_city
from tests.evaluation.rankers import fixed
from tests.messages import refused

# A softmax of 6, 1, 1, 1 and 1 tenths.
SIX_TENTHS = fixed(math.log(6), 0, 0, 0, 0)


def test_a_method_that_is_as_often_right_as_it_is_sure_is_calibrated() -> None:
    visits = [(user, int(user >= 6), "2012-04-01 12:00") for user in range(10)]
    city = small_city(visits, ["test"] * 10)  # six of ten go to the cafe
    found = calibration(evaluate(SIX_TENTHS, city, method="dice"))
    assert found.n == 10
    assert found.sure == pytest.approx(0.6)
    assert found.right == pytest.approx(0.6)
    assert found.expected_error == pytest.approx(0, abs=1e-7)
    assert found.log_loss == pytest.approx(-(6 * math.log(0.6) + 4 * math.log(0.1)) / 10)


def test_a_method_that_is_too_sure_of_itself_is_found_out() -> None:
    # Only one of the four targets of the odd city is the cafe.
    found = calibration(evaluate(SIX_TENTHS, odd_city(), method="dice"))
    assert [found.sure, found.right] == pytest.approx([0.6, 0.25])
    assert found.expected_error == pytest.approx(0.35)
    (only,) = found.bins
    assert [only.n, only.sure, only.right] == pytest.approx([4, 0.6, 0.25])


def test_the_error_weighs_bins_by_their_targets_worked_by_hand() -> None:
    sure = np.array([0.05, 0.1, 0.95, 0.95])
    right = np.array([False, True, True, True])
    low, high = reliability(sure, right)
    assert (low.low, low.high, low.n) == (0, 0.1, 2)  # a bin has its upper end
    assert [low.sure, low.right] == pytest.approx([0.075, 0.5])
    assert (high.low, high.high, high.n) == (0.9, 1.0, 2)
    assert [high.sure, high.right] == pytest.approx([0.95, 1])


def test_bins_without_a_target_are_left_out_and_none_is_lost() -> None:
    sure = np.random.default_rng(0).random(500)
    sure[0] = 1.0
    curve = reliability(sure, sure > 0.5, bins=7)
    assert sum(one.n for one in curve) == 500
    assert all(one.low < one.sure <= one.high for one in curve)


def test_a_calibrated_softmax_has_a_small_error_and_an_inflated_one_does_not() -> None:
    rng = np.random.default_rng(1)
    chance = rng.random(20_000)
    right = rng.random(20_000) < chance
    assert all(abs(one.sure - one.right) < 0.05 for one in reliability(chance, right))
    inflated = reliability(np.sqrt(chance), right)
    assert max(abs(one.sure - one.right) for one in inflated) > 0.2


def test_a_target_held_impossible_leaves_no_log_loss() -> None:
    found = calibration(evaluate(fixed(1e6, 0, 0, 0, 0), odd_city(), method="popularity"))
    assert found.log_loss is None


def test_no_bin_is_refused() -> None:
    with refused(BadInput):
        reliability(np.array([0.5]), np.array([True]), bins=0)
