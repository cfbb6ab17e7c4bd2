import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castpoi.core.errors import BadInput
from castpoi.evaluation.holm import holm
from tests.messages import refused

FAMILIES = st.lists(st.floats(0, 1), max_size=16)


def test_four_tests_worked_by_hand() -> None:
    # Sorted: 0.005 x 4, 0.01 x 3, 0.03 x 2, and 0.04 x 1, which may not be smaller than 0.06.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_a_test_alone_needs_no_correction_and_no_test_none() -> None:
    assert holm([0.04]) == [0.04]
    assert holm([]) == []


@settings(deadline=None)
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


@settings(deadline=None)
@given(FAMILIES)
def test_correction_never_helps_and_never_passes_bonferroni(p_values: list[float]) -> None:
    for p, corrected in zip(p_values, holm(p_values), strict=True):
        assert p <= corrected <= min(1, len(p_values) * p)


def test_a_family_without_a_true_effect_errs_no_more_often_than_alpha() -> None:
    rng = np.random.default_rng(3)
    families = rng.random((3000, 15))
    wrong = sum(min(holm(family.tolist())) < 0.05 for family in families)
    # 147 are due, 3000 x (1 - (1 - 0.05 / 15)^15); the deviation is 11.8, and 4 of them are 47.
    assert 100 <= wrong <= 194


@pytest.mark.parametrize("oddity", [-0.1, 1.1, float("nan")])
def test_what_is_no_p_value_is_refused(oddity: float) -> None:
    with refused(BadInput):
        holm([0.5, oddity])
