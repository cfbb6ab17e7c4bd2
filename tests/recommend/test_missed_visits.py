import pytest
from hypothesis import given
from hypothesis import strategies as st

from castpoi.recommend.missed_visits import left_out, most_missed

scores = st.floats(-30, 30)


def test_a_visit_has_its_share_of_all_that_would_be_lost() -> None:
    without = {4: 1.5, 5: 3.0, 6: 0.5, 7: 1.0}  # falls of 0.5, none, 1.5 and 1.0
    (first, most), (second, less) = most_missed(2.0, without, 2)
    assert (first, second) == (6, 7)
    assert (most, less) == pytest.approx((0.5, 1 / 3))


def test_of_visits_missed_alike_the_later_comes_first() -> None:
    assert most_missed(2.0, {0: 1.0, 1: 1.0}, 5) == [(1, 0.5), (0, 0.5)]


def test_what_rounding_takes_from_a_score_is_no_fall() -> None:
    assert most_missed(2.0, {0: 2.0, 1: 1.99999}, 5) == []


def test_the_last_fifty_visits_are_left_out_by_turns() -> None:
    assert [list(left_out(count)) for count in (0, 1, 3)] == [[], [0], [0, 1, 2]]
    assert left_out(120) == range(70, 120)


@given(scores, st.dictionaries(st.integers(0, 99), scores, max_size=12), st.integers(1, 5))
def test_weights_fall_and_sum_to_at_most_one(
    score: float, without: dict[int, float], shown: int
) -> None:
    missed = most_missed(score, without, shown)
    weights = [weight for _, weight in missed]
    assert len(missed) <= shown
    assert all(without[visit] < score for visit, _ in missed)
    assert all(0 < weight <= 1 for weight in weights)
    assert sum(weights) <= 1 + 1e-9
    assert weights == sorted(weights, reverse=True)
