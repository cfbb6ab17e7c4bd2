from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from castpoi.core.errors import BadInput
from castpoi.evaluation.contender import Contender
from castpoi.evaluation.significance import PairedTest, judge, paired_test
from tests.evaluation.results import result_of
from tests.messages import refused


def contender(name: str, *ranks_of_seeds: Sequence[float]) -> Contender:
    results = (result_of(ranks, method=name, seed=s) for s, ranks in enumerate(ranks_of_seeds))
    return Contender(name, tuple(results))


def test_a_metric_is_averaged_over_the_seeds_of_each_side_before_it_is_compared() -> None:
    # Reciprocal ranks: (1 + 1/2) / 2 = 3/4, 1/4 and 1/2 against 1/2, 1/2 and 1/2.
    ours = contender("ours", [1, 4, 2], [2, 4, 2])
    theirs = contender("theirs", [2, 2, 2], [2, 2, 2])
    found = paired_test(ours, theirs, "MRR", seed=1, draws=200)
    assert (found.n, found.seeds, found.against_seeds) == (3, (0, 1), (0, 1))
    assert found.mean == pytest.approx((3 / 4 + 1 / 4 + 1 / 2) / 3)
    assert found.against_mean == pytest.approx(1 / 2)
    assert found.bootstrap.mean == pytest.approx(found.mean - found.against_mean)
    assert (found.wilcoxon.wins, found.wilcoxon.ties, found.wilcoxon.losses) == (1, 1, 1)
    assert (found.contender, found.against, found.metric) == ("ours", "theirs", "MRR")


def test_equally_many_seeds_stand_on_each_side() -> None:
    ours, theirs = contender("ours", [1, 1], [9, 9], [9, 9]), contender("theirs", [2, 2])
    found = paired_test(ours, theirs, "MRR", seed=1, draws=200)
    assert (found.seeds, found.against_seeds) == ((0,), (0,))
    assert (found.mean, found.against_mean) == (1, 1 / 2)


def test_a_method_that_only_counts_stands_against_all_seeds() -> None:
    counted = replace(contender("counted", [2, 2]), is_counted=True)
    found = paired_test(contender("ours", [1, 1], [4, 4]), counted, "MRR", seed=1, draws=200)
    assert (found.seeds, found.against_seeds) == ((0, 1), ())
    assert found.mean == pytest.approx((1 + 1 / 4) / 2)


def test_seeds_of_one_method_differ_about_as_often_as_alpha_says_however_many_a_side() -> None:
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


def test_the_bootstrap_depends_on_its_seed_alone() -> None:
    rng = np.random.default_rng(0)
    ours, theirs = (contender(name, rng.integers(1, 30, 50).tolist()) for name in ("a", "b"))
    tests = [paired_test(ours, theirs, "NDCG@10", seed=seed, draws=200) for seed in (1, 1, 2)]
    assert tests[0] == tests[1]
    assert tests[0].bootstrap.low != tests[2].bootstrap.low


def test_an_unknown_metric_is_refused() -> None:
    with refused(BadInput):
        paired_test(contender("a", [1]), contender("b", [1]), "HR@7", seed=1)


@pytest.fixture
def clear() -> PairedTest:
    """Ahead on all of 300 targets."""
    ours, theirs = contender("ours", [1] * 300), contender("theirs", [2] * 300)
    return paired_test(ours, theirs, "MRR", seed=1, draws=999)


def with_p(test: PairedTest, wilcoxon: float, bootstrap: float) -> PairedTest:
    return replace(
        test,
        wilcoxon=replace(test.wilcoxon, p=wilcoxon),
        bootstrap=replace(test.bootstrap, p=bootstrap),
    )


def test_a_family_is_corrected_together_and_says_its_size(clear: PairedTest) -> None:
    tests = [with_p(clear, p, p) for p in (0.01, 0.04, 0.03, 0.005)]
    verdicts = judge(tests, family="four made-up tests")
    assert [v.wilcoxon_p for v in verdicts] == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert [v.bootstrap_p for v in verdicts] == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert [v.is_significant for v in verdicts] == [True, False, False, True]
    assert {(v.family, v.family_size) for v in verdicts} == {("four made-up tests", 4)}
    assert [v.test for v in verdicts] == tests


@pytest.mark.parametrize(
    ("p", "stars"), [(0.0009, "***"), (0.001, "**"), (0.01, "*"), (0.049, "*"), (0.05, "")]
)
def test_stars_follow_the_corrected_wilcoxon_test(clear: PairedTest, p: float, stars: str) -> None:
    (verdict,) = judge([with_p(clear, p, 0.9)], family="one")
    assert verdict.stars == stars


def test_tests_that_disagree_are_told(clear: PairedTest) -> None:
    def disagree(wilcoxon: float, bootstrap: float) -> bool:
        (verdict,) = judge([with_p(clear, wilcoxon, bootstrap)], family="one")
        return verdict.tests_disagree

    assert disagree(0.2, 0.01)
    assert disagree(0.01, 0.2)
    assert not disagree(0.01, 0.01)
    assert not disagree(0.2, 0.2)


def test_a_lower_mean_with_mostly_wins_is_a_disagreement_though_both_reject() -> None:
    # Often a little better, sometimes much worse: the ranks favour us, the mean does not.
    ours = contender("ours", [9] * 1500 + [10] * 300)
    theirs = contender("theirs", [10] * 1500 + [1] * 300)
    (verdict,) = judge([paired_test(ours, theirs, "MRR", seed=1, draws=999)], family="one")
    assert verdict.test.bootstrap.mean < 0 < verdict.test.wilcoxon.rank_biserial
    assert verdict.is_significant
    assert verdict.bootstrap_p < 0.05
    assert verdict.tests_disagree


def test_a_clear_advantage_is_significant_by_both_tests(clear: PairedTest) -> None:
    (verdict,) = judge([clear], family="one")
    assert verdict.stars == "***"
    assert not verdict.tests_disagree
    assert verdict.test.wilcoxon.rank_biserial == 1
    assert verdict.test.bootstrap.low == pytest.approx(0.5)
