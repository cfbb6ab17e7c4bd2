import math
from pathlib import Path

import numpy as np
import pytest

from castpoi.core.errors import BrokenFolder
from castpoi.core.files import read_json, write_json
from castpoi.evaluation.beyond import calibration
from castpoi.evaluation.evaluate import evaluate
from castpoi.evaluation.result import Result
from tests.cities import small_city
from tests.contract import odd_city
from tests.evaluation.rankers import fixed
from tests.manifests import accept_changes
from tests.messages import refused

# A softmax of 6, 1, 1, 1 and 1 tenths.
SIX_TENTHS = fixed(math.log(6), 0, 0, 0, 0)


@pytest.fixture
def office_first() -> Result:
    """Sends everybody to the office; the targets are office, station, station and cafe."""
    return evaluate(fixed(1, 9, 3, 2, 1), odd_city(), method="office", seed=3)


def test_the_distance_error_is_that_of_the_first_place(office_first: Result) -> None:
    # Along the street the office is 0, 3.6, 3.6 and 0.4 km from the targets.
    assert office_first.beyond.median_km_off == pytest.approx(2.0, abs=0.01)
    assert office_first.beyond.mean_km_off == pytest.approx(1.9, abs=0.01)


def test_coverage_counts_every_listed_place_once(office_first: Result) -> None:
    assert office_first.beyond.coverage == 1  # lists of ten hold all five places


def test_popularity_is_the_mean_of_checkins_in_train(office_first: Result) -> None:
    # Train: cafe 3, office 2, park 2, station 1, theatre 0.
    found = office_first.beyond
    assert found.popularity_of_first == 2
    assert found.popularity_of_listed == 8 / 5
    assert found.popularity_of_target == (2 + 1 + 1 + 3) / 4


def test_it_comes_back_from_disk(office_first: Result, tmp_path: Path) -> None:
    office_first.save(tmp_path / "result")
    assert Result.load(tmp_path / "result").beyond == office_first.beyond


def test_metrics_without_it_are_refused(office_first: Result, tmp_path: Path) -> None:
    office_first.save(tmp_path / "result")
    path = tmp_path / "result" / "metrics.json"
    write_json(path, {**read_json(path), "beyond": {"coverage": 1}})
    accept_changes(tmp_path / "result")
    with refused(BrokenFolder):
        Result.load(tmp_path / "result")


def test_a_method_as_often_right_as_its_confidence_is_calibrated() -> None:
    visits = [(user, int(user >= 6), "2012-04-01 12:00") for user in range(10)]
    city = small_city(visits, ["test"] * 10)  # six of ten go to the cafe
    found = evaluate(SIX_TENTHS, city, method="dice").beyond.calibration
    assert found.n == 10
    assert [found.confidence, found.accuracy] == pytest.approx([0.6, 0.6])
    assert found.expected_error == pytest.approx(0, abs=1e-7)


def test_an_overconfident_method_has_a_calibration_error() -> None:
    # Only one of the four targets of the odd city is the cafe.
    found = evaluate(SIX_TENTHS, odd_city(), method="dice").beyond.calibration
    assert [found.confidence, found.accuracy] == pytest.approx([0.6, 0.25])
    assert found.expected_error == pytest.approx(0.35)
    (only,) = found.bins
    assert [only.n, only.confidence, only.accuracy] == pytest.approx([4, 0.6, 0.25])


def test_the_error_weighs_bins_by_their_targets_worked_by_hand() -> None:
    confidence = np.array([0.05, 0.1, 0.95, 0.95, 0.95])
    found = calibration(confidence, np.array([False, True, True, True, True]))
    low, high = found.bins
    assert (low.low, low.n, high.low, high.n) == (0, 2, 0.9, 3)  # a bin has its upper end
    assert [low.confidence, low.accuracy] == pytest.approx([0.075, 0.5])
    assert [high.confidence, high.accuracy] == pytest.approx([0.95, 1])
    assert found.expected_error == pytest.approx((2 * 0.425 + 3 * 0.05) / 5)


def test_bins_without_a_target_are_left_out_and_no_target_is_lost() -> None:
    confidence = np.append(np.random.default_rng(0).random(500) * 0.5, 1.0)
    found = calibration(confidence, confidence > 0.5)
    assert sum(each.n for each in found.bins) == 501
    assert [each.low for each in found.bins] == [0.0, 0.1, 0.2, 0.3, 0.4, 0.9]
    assert all(each.low < each.confidence <= each.low + 0.1 for each in found.bins)
