import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castpoi.core.errors import BadInput
from castpoi.evaluation.bootstrap import DRAWS, Bootstrap, paired_bootstrap
from tests.messages import refused


def bootstrap(
    *differences: float, draws: int = 400, seed: int = 1, block: int = 2**19
) -> Bootstrap:
    rng = np.random.default_rng(seed)
    return paired_bootstrap(np.array(differences), rng=rng, draws=draws, block=block)


def test_two_targets_worked_by_hand() -> None:
    # Both drawn: (1, 1) in a quarter, (0, 0) in a quarter, else one of each: means 1, 0 and 1/2.
    # The mean is 1/2; half of the draws lie 1/2 or more from it.
    found = bootstrap(0, 1, draws=DRAWS)
    assert found.mean == 0.5
    assert (found.low, found.high) == (0, 1)
    assert found.p == pytest.approx(0.5, abs=0.02)


def test_contenders_that_never_differ_give_no_reason_to_reject() -> None:
    found = bootstrap(0, 0, 0)
    assert (found.mean, found.low, found.high, found.p) == (0, 0, 0, 1)


def test_p_is_never_zero_since_the_observation_counts_as_a_draw() -> None:
    rng = np.random.default_rng(3)
    found = bootstrap(*(1 + 0.01 * rng.standard_normal(50)), draws=999)
    assert found.p == 1 / 1000


def test_the_interval_is_that_of_the_normal_law_where_targets_are_many() -> None:
    differences = np.random.default_rng(5).normal(0.1, 1.0, size=2000)
    found = bootstrap(*differences, draws=2000)
    reach = 1.96 * differences.std() / np.sqrt(2000)
    assert found.low == pytest.approx(found.mean - reach, abs=0.1 * reach)
    assert found.high == pytest.approx(found.mean + reach, abs=0.1 * reach)


def test_one_seed_gives_one_outcome_and_another_seed_another() -> None:
    differences = np.random.default_rng(2).normal(0.2, 1.0, size=40)
    assert bootstrap(*differences) == bootstrap(*differences)
    assert bootstrap(*differences, seed=2) != bootstrap(*differences)


@pytest.mark.parametrize("block", [1, 7 * 40, 1000])
def test_the_size_of_a_block_has_no_say(block: int) -> None:
    differences = np.random.default_rng(2).normal(0.2, 1.0, size=40)
    assert bootstrap(*differences, block=block) == bootstrap(*differences)


def test_drawing_does_not_change_the_differences() -> None:
    differences = np.arange(5.0)
    paired_bootstrap(differences, rng=np.random.default_rng(0), draws=3)
    np.testing.assert_array_equal(differences, np.arange(5.0))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(-6, 6).map(lambda level: level / 6), min_size=1, max_size=30))
def test_the_interval_holds_between_the_smallest_and_the_largest(differences: list[float]) -> None:
    found = bootstrap(*differences, draws=50)
    assert min(differences) - 1e-12 <= found.low <= found.high <= max(differences) + 1e-12
    assert 1 / 51 <= found.p <= 1


def test_equal_contenders_are_told_apart_about_one_time_in_twenty() -> None:
    rng = np.random.default_rng(11)
    rejected = 0
    for seed in range(600):
        differences = rng.choice([-2, -1, 0, 0, 1, 2], size=150) / 3
        rejected += bootstrap(*differences, draws=199, seed=seed).p < 0.05
    # 30 are due; the deviation of a binomial count is 5.3, and 4 of them are 21.
    assert 9 <= rejected <= 51


def test_nothing_to_draw_from_and_no_draw_are_refused() -> None:
    with refused(BadInput):
        bootstrap()
    with refused(BadInput):
        bootstrap(1, 2, draws=0)
