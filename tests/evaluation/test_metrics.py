import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import kendalltau

from castpoi.evaluation.metrics import METRICS, kendall_tau, metrics_of, strata_of

RANKS = st.lists(st.integers(2, 400).map(lambda doubled: doubled / 2), min_size=1).map(np.array)
"""Mid-ranks: whole or half numbers from 1 on."""


def test_reciprocal_rank_is_a_third_when_the_next_place_comes_third() -> None:
    assert metrics_of(np.array([3.0]))["MRR"] == pytest.approx(1 / 3)


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
