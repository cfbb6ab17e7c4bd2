from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import wilcoxon

from castpoi.core.errors import BadInput
from castpoi.evaluation import significance
from castpoi.evaluation.compare import Contender
from castpoi.evaluation.significance import (
    DRAWS,
    Bootstrap,
    PairedTest,
    Users,
    holm,
    judge,
    paired_test,
    signed_rank,
)
from tests.evaluation.results import result_of
from tests.messages import refused

FEW_LEVELS = st.lists(st.integers(-6, 6).map(lambda level: level / 6), min_size=1, max_size=80)
"""Differences from few levels, so that zeros and equal sizes are the rule, as with HR@10."""
SIGNS = st.lists(st.sampled_from([-1, 1]), min_size=1, max_size=60)


def test_the_order_in_which_seeds_are_summed_breaks_no_tie() -> None:
    there, back = (0.1 + 0.2) + 0.3, 0.1 + (0.2 + 0.3)
    assert there != back
    assert signed_rank(np.array([there - back])).ties == 1


@settings(max_examples=25, deadline=None)
@given(FEW_LEVELS)
def test_the_approximation_agrees_with_scipy(differences: list[float]) -> None:
    found = signed_rank(np.array(differences))
    if not any(differences) or found.is_exact:
        return
    # scipy's own statistic is the smaller of the two sums.
    theirs = wilcoxon(differences, zero_method="wilcox", correction=False, method="asymptotic")
    assert found.p == pytest.approx(theirs.pvalue)
    assert min(found.rank_sum_for, found.rank_sum_against) == theirs.statistic


@settings(max_examples=25, deadline=None)
@given(SIGNS)
def test_the_exact_p_agrees_with_scipy(signs: list[int]) -> None:
    differences = np.array(signs) * np.arange(1, len(signs) + 1)
    found = signed_rank(differences.astype(np.float64))
    assert found.is_exact == (len(signs) <= 50)
    method = "exact" if found.is_exact else "asymptotic"
    theirs = wilcoxon(differences, method=method, correction=False)
    assert found.p == pytest.approx(theirs.pvalue)


def no_difference(rng: np.random.Generator, targets: int) -> NDArray[np.float64]:
    """Two equally good contenders: a third of the targets tied, sizes from few levels."""
    return rng.choice([-2, -1, 0, 0, 1, 2], size=targets) / 3


def test_the_signed_rank_test_rejects_equal_contenders_one_time_in_twenty() -> None:
    rng = np.random.default_rng(7)
    rejected = sum(signed_rank(no_difference(rng, 200)).p < 0.05 for _ in range(2000))
    # 100 are due; the deviation of a binomial count is 9.7, and 4 of them are 39.
    assert 61 <= rejected <= 139


def bootstrap(*differences: float, draws: int = 400, seed: int = 1) -> Bootstrap:
    users = Users.of(np.arange(len(differences)))
    (samples,) = users.sampled_means(np.array([differences], dtype=float), seed=seed, draws=draws)
    return Bootstrap.of(float(np.mean(differences)), samples)


def test_a_bootstrap_of_two_targets_worked_by_hand() -> None:
    # Both drawn: (1, 1) in a quarter, (0, 0) in a quarter, else one of each: means 1, 0 and 1/2.
    # The mean is 1/2; half of the draws lie 1/2 or more from it.
    found = bootstrap(0, 1, draws=DRAWS)
    assert found.mean == 0.5
    assert found.interval() == (0, 1)
    assert found.p == pytest.approx(0.5, abs=0.02)


def test_p_is_never_zero_since_the_observation_counts_as_a_draw() -> None:
    rng = np.random.default_rng(3)
    found = bootstrap(*(1 + 0.01 * rng.standard_normal(50)), draws=999)
    assert found.p == 1 / 1000


def test_the_interval_is_that_of_the_normal_law_where_targets_are_many() -> None:
    differences = np.random.default_rng(5).normal(0.1, 1.0, size=2000)
    found = bootstrap(*differences, draws=2000)
    reach = 1.96 * differences.std() / np.sqrt(2000)
    low, high = found.interval()
    assert low == pytest.approx(found.mean - reach, abs=0.1 * reach)
    assert high == pytest.approx(found.mean + reach, abs=0.1 * reach)


def test_the_intervals_of_several_tests_are_wider() -> None:
    differences = np.random.default_rng(5).normal(0.1, 1.0, size=2000)
    found = bootstrap(*differences, draws=20_000)
    deviation = differences.std() / np.sqrt(2000)
    low, high = found.interval(tests=20)  # 99.75 %, which is 3.02 deviations to each side
    assert (high - low) / 2 == pytest.approx(3.02 * deviation, rel=0.05)


@pytest.mark.parametrize("block", [1, 7 * 40, 1000])
def test_the_size_of_a_block_of_draws_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    differences = np.random.default_rng(2).normal(0.2, 1.0, size=40)
    whole = bootstrap(*differences)
    monkeypatch.setattr(significance, "BLOCK", block)
    monkeypatch.setattr(significance, "MAX_KEPT", 0)
    assert bootstrap(*differences).samples == pytest.approx(whole.samples)


def test_the_bootstrap_rejects_equal_contenders_one_time_in_twenty() -> None:
    rng = np.random.default_rng(11)
    rejected = 0
    for seed in range(600):
        differences = rng.choice([-2, -1, 0, 0, 1, 2], size=150) / 3
        rejected += bootstrap(*differences, draws=199, seed=seed).p < 0.05
    # 30 are due; the deviation of a binomial count is 5.3, and 4 of them are 21.
    assert 9 <= rejected <= 51


FAMILIES = st.lists(st.floats(0, 1), max_size=16)


def test_the_correction_of_four_tests_worked_by_hand() -> None:
    # Sorted: 0.005 x 4, 0.01 x 3, 0.03 x 2, and 0.04 x 1, which may not be smaller than 0.06.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


@settings(max_examples=25, deadline=None)
@given(FAMILIES)
def test_holm_rejects_what_the_step_down_procedure_rejects(p_values: list[float]) -> None:
    alpha = 0.05
    rejected = set()
    for step, number in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if p_values[number] * (len(p_values) - step) >= alpha:
            break
        rejected.add(number)
    corrected = holm(p_values)
    assert {number for number, p in enumerate(corrected) if p < alpha} == rejected


def test_a_family_without_a_true_effect_errs_no_more_often_than_alpha() -> None:
    rng = np.random.default_rng(3)
    families = rng.random((3000, 15))
    wrong = sum(min(holm(family.tolist())) < 0.05 for family in families)
    # 147 are due, 3000 x (1 - (1 - 0.05 / 15)^15); the deviation is 11.8, and 4 of them are 47.
    assert 100 <= wrong <= 194


@pytest.mark.parametrize("oddity", [-0.1, 1.1, float("nan")])
def test_a_p_value_out_of_range_is_refused(oddity: float) -> None:
    with refused(BadInput):
        holm([0.5, oddity])


def contender(name: str, *ranks_of_seeds: Sequence[float]) -> Contender:
    results = (result_of(ranks, method=name, seed=s) for s, ranks in enumerate(ranks_of_seeds))
    return Contender(name, tuple(results))


def test_a_metric_is_averaged_over_the_seeds_of_each_side_before_it_is_compared() -> None:
    # Reciprocal ranks: (1 + 1/2) / 2 = 3/4, 1/4 and 1/2 against 1/2, 1/2 and 1/2.
    ours = contender("ours", [1, 4, 2], [2, 4, 2])
    theirs = contender("theirs", [2, 2, 2], [2, 2, 2])
    found = paired_test(ours, theirs, "MRR", seed=1, draws=200)
    assert (found.seeds, found.against_seeds) == ((0, 1), (0, 1))
    assert found.mean == pytest.approx((3 / 4 + 1 / 4 + 1 / 2) / 3)
    assert found.against_mean == pytest.approx(1 / 2)
    assert found.users.mean == pytest.approx(found.mean - found.against_mean)
    assert (found.wilcoxon.wins, found.wilcoxon.ties, found.wilcoxon.losses) == (1, 1, 1)
    assert (found.contender, found.against, found.metric) == ("ours", "theirs", "MRR")


def test_each_side_has_the_same_number_of_seeds() -> None:
    ours, theirs = contender("ours", [1, 1], [9, 9], [9, 9]), contender("theirs", [2, 2])
    found = paired_test(ours, theirs, "MRR", seed=1, draws=200)
    assert (found.seeds, found.against_seeds) == ((0,), (0,))
    assert (found.mean, found.against_mean) == (1, 1 / 2)


def test_a_counting_baseline_is_compared_with_all_seeds() -> None:
    counted = replace(contender("counted", [2, 2]), is_counted=True)
    found = paired_test(contender("ours", [1, 1], [4, 4]), counted, "MRR", seed=1, draws=200)
    assert (found.seeds, found.against_seeds) == ((0, 1), ())
    assert found.mean == pytest.approx((1 + 1 / 4) / 2)


def test_seeds_of_one_method_differ_about_as_often_as_alpha_for_any_number_per_side() -> None:
    # Targets are easy or hard, and every seed lands somewhere near: reciprocal ranks are skewed,
    # so a mean of two is less extreme than one, and a signed-rank test takes that for better.
    rng = np.random.default_rng(3)
    hard = rng.normal(2.0, 1.5, 500)
    equal = unequal = 0
    for _ in range(400):
        seeds = np.ceil(np.exp(hard + rng.normal(0.0, 0.7, (3, 500)))).clip(1, 5000)
        two, alone = contender("two", *seeds[:2].tolist()), contender("alone", seeds[2].tolist())
        equal += paired_test(two, alone, "MRR", seed=1, draws=1).wilcoxon.p < 0.05
        counted = replace(alone, is_counted=True)  # all seeds against one, as they once were
        unequal += paired_test(two, counted, "MRR", seed=1, draws=1).wilcoxon.p < 0.05
    # Of 400 tests 20 are expected to reject, with a deviation of 4.4.
    assert 7 <= equal <= 33
    assert unequal > 60


def test_an_unknown_metric_is_refused() -> None:
    with refused(BadInput):
        paired_test(contender("a", [1]), contender("b", [1]), "HR@7", seed=1)


@pytest.fixture
def clear() -> PairedTest:
    """Ahead on all of 300 targets."""
    ours, theirs = contender("ours", *[[1] * 300] * 2), contender("theirs", *[[2] * 300] * 2)
    return paired_test(ours, theirs, "MRR", seed=1, draws=999)


def with_p(test: PairedTest, wilcoxon: float, bootstrap: float) -> PairedTest:
    users = replace(test.users, p=bootstrap)
    wilcoxon_test = replace(test.wilcoxon, p=wilcoxon)
    return replace(test, wilcoxon=wilcoxon_test, users=users, users_and_seeds=users)


def test_a_family_is_corrected_together_and_has_its_size(clear: PairedTest) -> None:
    tests = [with_p(clear, p, p) for p in (0.01, 0.04, 0.03, 0.005)]
    verdicts = judge(tests, family="four made-up tests")
    assert [v.wilcoxon_p for v in verdicts] == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert [v.users_p for v in verdicts] == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert [v.seeds_p for v in verdicts] == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert [v.is_significant for v in verdicts] == [True, False, False, True]
    assert {(v.family, v.family_size) for v in verdicts} == {("four made-up tests", 4)}
    assert [v.test for v in verdicts] == tests


@pytest.mark.parametrize(
    ("p", "stars"), [(0.0009, "***"), (0.001, "**"), (0.01, "*"), (0.049, "*"), (0.05, "")]
)
def test_stars_follow_the_largest_of_the_corrected_p_values(
    clear: PairedTest, p: float, stars: str
) -> None:
    for test in (with_p(clear, p, 0.0001), with_p(clear, 0.0001, p)):
        (verdict,) = judge([test], family="one")
        assert (verdict.p, verdict.stars) == (p, stars)


def test_one_seed_of_a_learned_method_gives_no_verdict(clear: PairedTest) -> None:
    ours, alone = contender("ours", [1] * 300, [1] * 300), contender("alone", [9] * 300)
    tests = [paired_test(ours, alone, "MRR", seed=1, draws=99), clear]
    verdict, other = judge(tests, family="two")
    assert verdict.wilcoxon_p < 0.001
    assert (verdict.p, verdict.stars, verdict.is_significant) == (None, "", False)
    assert other.stars != ""
    assert other.family_size == 2


def test_a_counting_method_has_no_noise_of_seeds() -> None:
    counted = replace(contender("counted", [2] * 30 + [3] * 30), is_counted=True)
    other = replace(contender("other", [3] * 30 + [2] * 30), is_counted=True)
    found = paired_test(counted, other, "MRR", seed=1, draws=99)
    assert found.users_and_seeds is not None
    assert np.array_equal(found.users_and_seeds.samples, found.users.samples)


def test_a_lower_mean_with_mostly_wins_is_not_significant_though_all_tests_reject() -> None:
    # Often a little better, sometimes much worse: the ranks favour us, the mean does not.
    ours = contender("ours", *[[9] * 1500 + [10] * 300] * 2)
    theirs = contender("theirs", *[[10] * 1500 + [1] * 300] * 2)
    (verdict,) = judge([paired_test(ours, theirs, "MRR", seed=1, draws=999)], family="one")
    assert verdict.test.users.mean < 0 < verdict.test.wilcoxon.rank_biserial
    assert verdict.p is not None
    assert verdict.p < 0.05
    assert not verdict.is_significant
    assert verdict.stars == ""


def test_a_user_with_several_targets_is_drawn_with_all_of_them() -> None:
    # Two users of two targets each: a sample has one of them twice, or each once.
    users = Users.of(np.array([7, 7, 9, 9]))
    (means,) = users.sampled_means(np.array([[0.0, 1.0, 2.0, 3.0]]), seed=1, draws=200)
    assert set(means.tolist()) == {0.5, 1.5, 2.5}
    unequal = Users.of(np.array([7, 9, 9, 9]))
    (means,) = unequal.sampled_means(np.array([[4.0, 0.0, 0.0, 0.0]]), seed=1, draws=200)
    assert set(means.tolist()) == {0.0, 1.0, 4.0}  # means over targets, not over users


def test_targets_of_one_user_do_not_count_as_independent() -> None:
    # Ten targets a user share one lead, which is noise: only 30 things were measured.
    rng = np.random.default_rng(5)
    alone = together = 0
    for _ in range(100):
        ranks = np.repeat(np.where(rng.random(30) < 0.5, 1, 2), 10)
        one = contender("a", ranks.tolist(), ranks.tolist())
        other = contender("b", (3 - ranks).tolist(), (3 - ranks).tolist())
        alone += paired_test(one, other, "MRR", seed=1, draws=99).users.p < 0.05
        shared = _of_users(one, 10), _of_users(other, 10)
        found = paired_test(shared[0], shared[1], "MRR", seed=1, draws=99)
        together += found.users.p < 0.05 or found.wilcoxon.p < 0.05
    assert alone > 40
    assert together < 15


def _of_users(one: Contender, targets: int) -> Contender:
    """The same results, with this number of targets for each user."""
    user = np.arange(one.results[0].ranks.height) // targets
    column = pl.Series("user", user, dtype=pl.UInt32)
    return replace(
        one, results=tuple(replace(r, ranks=r.ranks.with_columns(column)) for r in one.results)
    )


def test_methods_whose_seeds_differ_are_rarely_called_different() -> None:
    # Every seed of both methods has the same mean rank but for noise of the training.
    rng = np.random.default_rng(3)
    users = careful = 0
    for _ in range(200):
        hard = rng.normal(2.0, 1.5, 300)
        luck = rng.normal(0.0, 0.1, (6, 1)) + rng.normal(0.0, 0.5, (6, 300))
        ranks = np.ceil(np.exp(hard + luck)).clip(1, 5000).tolist()
        sides = contender("one", *ranks[:3]), contender("other", *ranks[3:])
        found = paired_test(*sides, "MRR", seed=1, draws=99)
        assert found.users_and_seeds is not None
        users += found.users.p < 0.05
        careful += found.users_and_seeds.p < 0.05
    assert users > 60  # of 200, where 10 are allowed
    assert careful <= 19  # 10 and three deviations of a binomial count
