from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import softmax
from scipy.stats import rankdata

from castpoi.baselines.simple import Revisit
from castpoi.checkins.trajectory import Histories
from castpoi.core.errors import BadScores
from castpoi.evaluation import ranking
from castpoi.evaluation.ranking import mid_ranks, rank_targets, top_places
from castpoi.methods.ranker import Abilities
from tests.cities import PARK
from tests.contract import odd_city
from tests.evaluation.rankers import Fixed, fixed
from tests.messages import refused

FEW_LEVELS = st.integers(min_value=-2, max_value=3)
"""Scores from few levels, so that ties are the rule."""


@st.composite
def scored_targets(draw: st.DrawFn) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    places = draw(st.integers(1, 8))
    rows = draw(st.lists(st.lists(FEW_LEVELS, min_size=places, max_size=places), min_size=1))
    targets = draw(st.lists(st.integers(0, places - 1), min_size=len(rows), max_size=len(rows)))
    return np.array(rows, dtype=np.float32), np.array(targets, dtype=np.int64)


@settings(max_examples=25, deadline=None)
@given(scored_targets())
def test_ranks_agree_with_a_slow_loop_and_with_scipy(
    case: tuple[NDArray[np.float32], NDArray[np.int64]],
) -> None:
    scores, targets = case
    ranks = mid_ranks(scores, targets)
    for row, target, rank in zip(scores, targets, ranks, strict=True):
        better = sum(1 for other in row if other > row[target])
        tied = sum(1 for place, other in enumerate(row) if place != target and other == row[target])
        assert rank == 1 + better + tied / 2
        assert rank == rankdata(-row, method="average")[target]


@settings(max_examples=25, deadline=None)
@given(scored_targets(), st.randoms())
def test_the_order_of_the_places_changes_no_rank(
    case: tuple[NDArray[np.float32], NDArray[np.int64]], rng: Random
) -> None:
    scores, targets = case
    order = list(range(scores.shape[1]))
    rng.shuffle(order)
    new_number = np.argsort(order)
    np.testing.assert_array_equal(
        mid_ranks(scores[:, order], new_number[targets]), mid_ranks(scores, targets)
    )


@pytest.mark.parametrize("oddity", [np.nan, np.inf, -np.inf])
def test_a_score_that_is_no_finite_number_is_an_error_never_a_rank(oddity: float) -> None:
    city = odd_city()
    rows = city.targets("test")
    with refused(BadScores):
        rank_targets(fixed(1, 2, oddity, 4, 5), city.trajectories, rows, method="dice")


def test_scores_for_too_few_places_are_refused() -> None:
    city = odd_city()
    with refused(BadScores):
        rank_targets(
            fixed(1, 2, 3, 4, 5, seen=3), city.trajectories, city.targets("test"), method="dice"
        )


def test_the_size_of_a_block_changes_no_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    city = odd_city()
    ranker = Revisit.count(city, part="test")
    rows = city.targets("test")
    at_once = rank_targets(ranker, city.trajectories, rows, method="revisit")
    monkeypatch.setattr(ranking, "BLOCK_BYTES", 1)
    one_by_one = rank_targets(ranker, city.trajectories, rows, method="revisit")
    np.testing.assert_array_equal(at_once, one_by_one)
    assert len(set(at_once.tolist())) > 1


def test_no_block_of_scores_is_larger_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    city = odd_city()
    blocks: list[int] = []

    class Watched(Fixed):
        def encode(self, histories: Histories) -> int:
            blocks.append(len(histories))
            return super().encode(histories)

    ranker = Watched(np.arange(5, dtype=np.float32))
    monkeypatch.setattr(ranking, "BLOCK_BYTES", 2 * 5 * 4)  # five scores of four bytes each
    rows = city.targets("test")[:3]
    rank_targets(ranker, city.trajectories, rows, method="watched")
    assert blocks == [2, 1]


def test_targets_are_ranked_after_their_own_history() -> None:
    # User 2 has been in the park only, and goes to the station next.
    city = odd_city()
    row = city.targets("test")[[2]]
    ranker = Revisit.count(city, part="test")
    assert city.trajectories.histories_before(row).place.tolist() == [PARK]
    # The park is better; the station is tied at zero with the three other places.
    assert rank_targets(ranker, city.trajectories, row, method="revisit") == [2 + 3 / 2]


@pytest.mark.parametrize("known_time", [None, False, True])
def test_only_a_ranker_that_needs_it_receives_the_time_of_the_target(
    known_time: bool | None,
) -> None:
    city = odd_city()
    rows = city.targets("test")
    received: list[list[int] | None] = []

    class Watched(Fixed):
        def encode(self, histories: Histories) -> int:
            moments = histories.next_at_us
            received.append(None if moments is None else moments.tolist())
            return super().encode(histories)

    ranker = Watched(np.arange(5, dtype=np.float32))
    if known_time is not None:
        object.__setattr__(ranker, "abilities", Abilities(needs_next_time=known_time))
    rank_targets(ranker, city.trajectories, rows, method="watched")
    assert received == [city.trajectories.at_us[rows].tolist() if known_time else None]


def test_a_ranker_that_reads_few_visits_is_given_no_others() -> None:
    """Else a thousand targets of one user with a million visits copy a thousand million."""
    city = odd_city()
    rows = np.arange(len(city.trajectories))
    lengths: list[int] = []

    class Watched(Fixed):
        def encode(self, histories: Histories) -> int:
            lengths.append(int(histories.lengths.max()))
            return super().encode(histories)

    ranker = Watched(np.arange(5, dtype=np.float32))
    rank_targets(ranker, city.trajectories, rows, method="watched")
    object.__setattr__(ranker, "abilities", Abilities(max_visits=2))
    rank_targets(ranker, city.trajectories, rows, method="watched")
    assert lengths[0] > 2
    assert lengths[1:] == [2]


SCORES = st.integers(1, 15).flatmap(
    lambda places: st.lists(
        st.lists(st.integers(-3, 4), min_size=places, max_size=places), min_size=1, max_size=5
    ).map(lambda rows: np.array(rows, dtype=np.float32))
)


@settings(max_examples=25, deadline=None)
@given(SCORES)
def test_the_ten_best_places_agree_with_sorting_all_and_with_the_softmax_of_scipy(
    scores: NDArray[np.float32],
) -> None:
    found = top_places(scores)
    for row, best in zip(scores.tolist(), found.place.tolist(), strict=True):
        assert best == sorted(range(len(row)), key=lambda place: (-row[place], place))[:10]
    whole = np.take_along_axis(softmax(scores.astype(np.float64), axis=1), found.place, axis=1)
    np.testing.assert_allclose(found.softmax, whole, rtol=1e-6)


def test_large_scores_do_not_overflow() -> None:
    assert top_places(np.array([[3e8, 0]], dtype=np.float32)).softmax.tolist() == [[1, 0]]
