from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castpoi.training.config import TrainingConfig
from castpoi.training.schedule import learning_rate, rate_at


def test_three_warm_up_epochs_rise_by_thirds_and_the_cosine_falls_by_hand() -> None:
    rates = [rate_at(unit, units=7, warmup=3, highest=0.9, final=0.1) for unit in range(8)]
    falling = [0.9, 0.1 + 0.4 * (1 + 0.5**0.5), 0.5, 0.1 + 0.4 * (1 - 0.5**0.5), 0.1]
    assert rates == pytest.approx([0.3, 0.6, 0.9, *falling])


def test_the_paper_changes_the_rate_with_every_epoch_only() -> None:
    paper = TrainingConfig.preset("paper")
    first = [learning_rate(paper, epoch=0, step=step, steps=770) for step in (0, 1, 769)]
    assert first == pytest.approx([1e-3 / 3] * 3)
    assert learning_rate(paper, epoch=2, step=0, steps=770) == pytest.approx(1e-3)
    assert learning_rate(paper, epoch=3, step=0, steps=770) == pytest.approx(1e-3)
    # epoch 49 is 46/47 of the way down
    assert learning_rate(paper, epoch=49, step=9, steps=770) == pytest.approx(2.12e-6, rel=0.01)


def test_steps_may_warm_up_for_half_an_epoch() -> None:
    config = TrainingConfig(epochs=2, warmup_epochs=0.5, schedule="step", learning_rate=0.1)
    rates = [learning_rate(config, epoch=0, step=step, steps=4) for step in range(3)]
    assert rates == pytest.approx([0.05, 0.1, 0.1])
    late = learning_rate(config, epoch=1, step=1, steps=4)  # half of the six steps that fall
    assert late == pytest.approx((0.1 + 1e-6) / 2)


def test_a_run_that_ends_within_its_warm_up_only_rises() -> None:
    rates = [rate_at(unit, units=2, warmup=3, highest=0.9, final=0.1) for unit in range(2)]
    assert rates == pytest.approx([0.3, 0.6])


@given(st.integers(1, 60), st.integers(0, 60), st.floats(1e-6, 1.0))
def test_the_rate_stays_between_its_bounds_and_falls_after_the_warm_up(
    units: int, warmup: int, highest: float
) -> None:
    final = highest / 100
    rates = [
        rate_at(unit, units=units, warmup=warmup, highest=highest, final=final)
        for unit in range(units)
    ]
    assert all(0 < rate <= highest * (1 + 1e-12) for rate in rates)
    falling = rates[warmup:]
    assert all(later <= sooner for sooner, later in pairwise(falling))
