"""What every ranking method owes, counted or learned; `tests/baselines/test_contract.py` runs it.

The city is small but has all that is odd: a user with one check-in before the target, one whose
history is empty, an unpopular place, and a place nobody has been to.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.checkins.trajectory import Histories
from castpoi.methods.ranker import SavableRanker
from castpoi.methods.registry import Method
from castpoi.training.train import TrainingOptions
from castpoi.training.train import fit as fit_fully
from tests.cities import CAFE, OFFICE, PARK, STATION, small_city

_VISITS = [
    (0, CAFE, "2012-04-02 12:00"),
    (0, OFFICE, "2012-04-02 13:00"),
    (0, CAFE, "2012-04-03 12:00"),
    (0, OFFICE, "2012-04-03 13:00"),
    (0, PARK, "2012-04-03 21:00"),
    (0, CAFE, "2012-04-04 12:00"),
    (0, OFFICE, "2012-04-04 13:00"),
    (1, STATION, "2012-04-02 12:00"),
    (1, CAFE, "2012-04-02 13:30"),
    (1, OFFICE, "2012-04-02 19:00"),
    (1, STATION, "2012-04-03 12:00"),
    (2, PARK, "2012-04-02 15:00"),
    (2, STATION, "2012-04-03 15:00"),
    (3, CAFE, "2012-04-05 15:00"),
]
_PARTS = (
    [record.TRAIN] * 5
    + [record.VALIDATION, record.TEST]
    + [record.TRAIN] * 2
    + [record.VALIDATION, record.TEST]
    + [record.TRAIN, record.TEST]
    + [record.TEST]
)


_LATER = "2013-01-01 09:30"


def odd_city(*, test_place: int | None = None, later: bool = False) -> City:
    """The city of the contract; test targets may be moved to another place, or to another year."""
    visits = [
        visit if part != record.TEST else _moved(visit, test_place, later=later)
        for visit, part in zip(_VISITS, _PARTS, strict=True)
    ]
    return small_city(visits, _PARTS)


def _moved(visit: tuple[int, int, str], place: int | None, *, later: bool) -> tuple[int, int, str]:
    user, own, at = visit
    return user, own if place is None else place, _LATER if later else at


def check_contract(
    method: Method, *, preset: str | None = None, settings: Mapping[str, str] | None = None
) -> None:
    """Everything a method owes; one that learns does so briefly, for nobody asks for accuracy."""
    brief = TrainingOptions(preset=preset, settings={"epochs": "2", **(settings or {})})
    options = brief if method.needs_training else None

    def fit(city: City) -> SavableRanker[Any]:
        return fit_fully(method, city, seed=7, options=options)

    city = odd_city()
    histories = _histories(city)
    ranker = fit(city)
    scores = _score(ranker, histories)
    # A learned method may round differently in batches of another size: a little of what tells
    # one place from another, however small its scores are.
    spread = float(np.ptp(scores))
    assert spread > 0
    tolerance = 1e-5 * min(1.0, spread) if method.needs_training else 0.0
    _check_scores_are_numbers(ranker, scores, histories)
    _check_one_seed_gives_one_ranker(ranker, fit(city))
    _check_restoring_changes_nothing(method, ranker, histories, scores)
    _check_batch_size_changes_nothing(ranker, city, scores, tolerance)
    _check_candidates_are_columns(ranker, histories, scores, tolerance)
    _check_the_future_never_leaks(fit, histories, scores)
    _check_histories_are_not_mutated(ranker, city)


def _check_scores_are_numbers(
    ranker: SavableRanker[Any], scores: NDArray[np.float32], histories: Histories
) -> None:
    lengths = histories.lengths.tolist()
    assert {0, 1} <= set(lengths), "the contract needs an empty and a one-visit history"
    assert scores.shape == (len(histories), ranker.places)
    assert scores.dtype == np.float32
    assert np.isfinite(scores).all()


def _check_one_seed_gives_one_ranker(ranker: SavableRanker[Any], again: SavableRanker[Any]) -> None:
    assert again.arrays.keys() == ranker.arrays.keys()
    for name, weight in ranker.arrays.items():
        np.testing.assert_array_equal(np.asarray(again.arrays[name]), np.asarray(weight))


def _check_restoring_changes_nothing(
    method: Method,
    ranker: SavableRanker[Any],
    histories: Histories,
    scores: NDArray[np.float32],
) -> None:
    restored = method.ranker_class().restore(ranker.config, ranker.arrays)
    np.testing.assert_array_equal(_score(restored, histories), scores)


def _check_batch_size_changes_nothing(
    ranker: SavableRanker[Any], city: City, scores: NDArray[np.float32], tolerance: float
) -> None:
    targets = city.targets(record.TEST)
    alone = [
        _score(ranker, city.trajectories.histories_before(targets[[number]]))
        for number in range(len(targets))
    ]
    np.testing.assert_allclose(np.concatenate(alone), scores, rtol=0, atol=tolerance)


def _check_candidates_are_columns(
    ranker: SavableRanker[Any],
    histories: Histories,
    scores: NDArray[np.float32],
    tolerance: float,
) -> None:
    for wanted in ([3, 0, 4], [2, 2, 1], list(range(ranker.places)), []):
        candidates = np.array(wanted, dtype=np.int64)
        some = ranker.score(ranker.encode(histories), candidates)
        assert some.dtype == np.float32
        np.testing.assert_allclose(some, scores[:, candidates], rtol=0, atol=tolerance)


def _check_the_future_never_leaks(
    fit: Callable[[City], SavableRanker[Any]], histories: Histories, scores: NDArray[np.float32]
) -> None:
    """Wherever and whenever the test targets are, a ranker made without them scores the same."""
    for city in (odd_city(test_place=PARK), odd_city(test_place=STATION), odd_city(later=True)):
        np.testing.assert_array_equal(_score(fit(city), histories), scores)


def _check_histories_are_not_mutated(ranker: SavableRanker[Any], city: City) -> None:
    histories, untouched = _histories(city), _histories(city)
    _score(ranker, histories)
    for name in ("place", "at_us", "offset_minutes", "bounds"):
        np.testing.assert_array_equal(getattr(histories, name), getattr(untouched, name))


def _histories(city: City) -> Histories:
    return city.trajectories.histories_before(city.targets(record.TEST))


def _score(ranker: SavableRanker[Any], histories: Histories) -> NDArray[np.float32]:
    return ranker.score(ranker.encode(histories))
