import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import kendalltau

from castpoi.core.errors import BrokenFolder
from castpoi.core.files import read_json, write_json
from castpoi.evaluation.beyond import calibration
from castpoi.evaluation.evaluate import evaluate
from castpoi.evaluation.metrics import METRICS, kendall_tau, metrics_of, strata_of
from castpoi.evaluation.result import Result
from tests.cities import small_city
from tests.contract import odd_city
from tests.evaluation.rankers import fixed
from tests.manifests import accept_changes
from tests.messages import refused

RANKS = st.lists(st.integers(2, 400).map(lambda doubled: doubled / 2), min_size=1).map(np.array)
"""Mid-ranks: whole or half numbers from 1 on."""


def test_metrics_of_four_targets_worked_by_hand() -> None:
    found = metrics_of(np.array([1.0, 3.0, 7.5, 20.0]))
    gain = [1.0, 1 / math.log2(4), 1 / math.log2(8.5), 1 / math.log2(21)]
    assert found == pytest.approx(
        {
            "HR@1": 1 / 4,
            "HR@5": 2 / 4,
            "HR@10": 3 / 4,
            "HR@20": 1.0,
            "NDCG@5": sum(gain[:2]) / 4,
            "NDCG@10": sum(gain[:3]) / 4,
            "NDCG@20": sum(gain) / 4,
            "MRR": (1 + 1 / 3 + 1 / 7.5 + 1 / 20) / 4,
        }
    )


def test_a_mid_rank_just_beyond_the_cutoff_is_no_hit() -> None:
    assert metrics_of(np.array([10.0]))["HR@10"] == 1
    assert metrics_of(np.array([10.5]))["HR@10"] == 0
    assert metrics_of(np.array([1.5]))["HR@1"] == 0


def test_strata_split_the_targets_into_revisits_and_new_places() -> None:
    strata = strata_of(np.array([1.0, 4.0, 2.0]), np.array([True, False, True]))
    assert strata["revisit"]["n"] == 2
    assert strata["revisit"]["MRR"] == pytest.approx((1 + 1 / 2) / 2)
    assert strata["new"]["n"] == 1
    assert strata["new"]["MRR"] == pytest.approx(1 / 4)


def test_an_empty_stratum_has_no_metrics() -> None:
    strata = strata_of(np.array([1.0]), np.array([True]))
    assert strata["new"] == {**dict.fromkeys(METRICS), "n": 0}


@given(RANKS)
def test_metrics_are_fractions_and_hits_grow_with_the_cutoff(ranks: NDArray[np.float64]) -> None:
    found = metrics_of(ranks)
    values = [value for value in found.values() if value is not None]
    assert len(values) == len(METRICS)
    assert all(0 <= value <= 1 for value in values)
    for kind in ("HR", "NDCG"):
        growing = [found[name] or 0.0 for name in METRICS if name.startswith(kind)]
        assert growing == sorted(growing)
    assert all((found[f"NDCG@{k}"] or 0) <= (found[f"HR@{k}"] or 0) for k in (5, 10, 20))


@given(RANKS, st.data())
def test_strata_weighted_by_their_size_make_the_whole(
    ranks: NDArray[np.float64], data: st.DataObject
) -> None:
    flags = data.draw(st.lists(st.booleans(), min_size=len(ranks), max_size=len(ranks)))
    strata = strata_of(ranks, np.array(flags))
    for name, whole in metrics_of(ranks).items():
        parts = sum((s[name] or 0.0) * (s["n"] or 0) for s in strata.values())
        assert parts / len(ranks) == pytest.approx(whole)


def test_kendalls_tau_is_that_of_scipy() -> None:
    one, other = [3.0, 1.0, 2.0, 2.0, 5.0], [4.0, 1.0, 2.0, 3.0, 3.0]
    assert kendall_tau(one, other) == pytest.approx(kendalltau(one, other).statistic)
    assert kendall_tau(one, one) == 1
    assert kendall_tau([1, 2, 3], [3, 2, 1]) == -1
    assert kendall_tau([1, 1], [1, 2]) == 0


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
