import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import wilcoxon

from castpoi.evaluation.wilcoxon import signed_rank

FEW_LEVELS = st.lists(st.integers(-6, 6).map(lambda level: level / 6), min_size=1, max_size=80)
"""Differences from few levels, so that zeros and equal sizes are the rule, as with HR@10."""
SIGNS = st.lists(st.sampled_from([-1, 1]), min_size=1, max_size=60)


def test_five_differences_worked_by_hand() -> None:
    # Sizes 1, 2, 3, 4, 5 have ranks 1 to 5. The losses have ranks 1 and 2: 3 against 12. Of the 32
    # sign patterns 5 have a sum of 3 or less (nothing, 1, 2, 3, 1 + 2), and as many of 12 or more.
    found = signed_rank(np.array([-0.1, -0.2, 0.3, 0.4, 0.5]))
    assert (found.wins, found.ties, found.losses) == (3, 0, 2)
    assert (found.rank_sum_for, found.rank_sum_against) == (12, 3)
    assert found.is_exact
    assert found.p == pytest.approx(10 / 32)
    assert found.rank_biserial == pytest.approx((12 - 3) / 15)


def test_zeros_are_left_out_and_equal_sizes_share_their_rank() -> None:
    # Without the zero: 0.5, 0.5 and 0.5 share rank 2, and 1 has rank 4.
    found = signed_rank(np.array([0.5, 0.0, -0.5, 0.5, 1.0]))
    assert (found.wins, found.ties, found.losses) == (3, 1, 1)
    assert (found.rank_sum_for, found.rank_sum_against) == (2 + 2 + 4, 2)
    assert not found.is_exact


def test_contenders_that_never_differ_give_no_reason_to_reject() -> None:
    found = signed_rank(np.zeros(1000))
    assert (found.p, found.rank_biserial, found.ties) == (1, 0, 1000)


def test_one_side_always_ahead_has_the_largest_effect() -> None:
    assert signed_rank(np.array([0.1, 0.2])).rank_biserial == 1
    assert signed_rank(np.array([-0.1, -0.2])).rank_biserial == -1


def test_the_order_in_which_seeds_are_summed_breaks_no_tie() -> None:
    there, back = (0.1 + 0.2) + 0.3, 0.1 + (0.2 + 0.3)
    assert there != back
    assert signed_rank(np.array([there - back])).ties == 1


def test_overwhelming_evidence_is_still_no_proof() -> None:
    assert 0 < signed_rank(np.ones(20_000)).p < 1e-300


@settings(max_examples=60, deadline=None)
@given(FEW_LEVELS)
def test_the_approximation_agrees_with_scipy(differences: list[float]) -> None:
    found = signed_rank(np.array(differences))
    if not any(differences) or found.is_exact:
        return
    # scipy's own statistic is the smaller of the two sums.
    theirs = wilcoxon(differences, zero_method="wilcox", correction=False, method="asymptotic")
    assert found.p == pytest.approx(theirs.pvalue)
    assert min(found.rank_sum_for, found.rank_sum_against) == theirs.statistic


@settings(max_examples=60, deadline=None)
@given(SIGNS)
def test_the_exact_p_agrees_with_scipy(signs: list[int]) -> None:
    differences = np.array(signs) * np.arange(1, len(signs) + 1)
    found = signed_rank(differences.astype(np.float64))
    assert found.is_exact == (len(signs) <= 50)
    method = "exact" if found.is_exact else "asymptotic"
    theirs = wilcoxon(differences, method=method, correction=False)
    assert found.p == pytest.approx(theirs.pvalue)


@settings(deadline=None)
@given(FEW_LEVELS)
def test_changing_sides_turns_the_effect_and_nothing_else(differences: list[float]) -> None:
    one, other = signed_rank(np.array(differences)), signed_rank(-np.array(differences))
    assert one.p == pytest.approx(other.p)
    assert one.rank_biserial == pytest.approx(-other.rank_biserial)
    assert (one.wins, one.ties, one.losses) == (other.losses, other.ties, other.wins)


def no_difference(rng: np.random.Generator, targets: int) -> NDArray[np.float64]:
    """Two equally good contenders: a third of the targets tied, sizes from few levels."""
    return rng.choice([-2, -1, 0, 0, 1, 2], size=targets) / 3


def test_equal_contenders_are_told_apart_about_one_time_in_twenty() -> None:
    rng = np.random.default_rng(7)
    rejected = sum(signed_rank(no_difference(rng, 200)).p < 0.05 for _ in range(2000))
    # 100 are due; the deviation of a binomial count is 9.7, and 4 of them are 39.
    assert 61 <= rejected <= 139
