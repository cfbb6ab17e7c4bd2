"""The contract of ranking methods, counted or learned; `tests/baselines/test_contract.py` runs it.

The city is small but has every edge case: a user with one check-in before the target, one with an
empty history, an unpopular place, and a place without check-ins.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.checkins.trajectory import Histories
from castpoi.methods.ranker import SavableRanker
from castpoi.methods.registry import Method
from castpoi.training.job import TrainingOptions
from castpoi.training.train import fit, settings_of
from tests.cities import CAFE, OFFICE, PARK, STATION, small_city
from tests.methods.numbers import check_numbers

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


def check_contract(method: Method) -> None:
    """Check all that a method must guarantee, with two trainings."""
    ranker = check_scores(method)
    scores = _score(ranker, _histories(odd_city()))
    _check_restoring_changes_nothing(method, ranker, _histories(odd_city()), scores)
    moved = _fit(method, odd_city(test_place=PARK, later=True))
    _check_test_targets_change_nothing(ranker, moved)


def check_scores(
    method: Method, *, preset: str | None = None, settings: Mapping[str, str] | None = None
) -> SavableRanker[Any]:
    """Check the scores of a method, with one training of two epochs; its ranker."""
    city = odd_city()
    histories = _histories(city)
    ranker = _fit(method, city, preset, settings)
    scores = _score(ranker, histories)
    # a learned method may round differently in batches of another size: a little of what separates
    # one place from another, however small its scores are
    spread = float(np.ptp(scores))
    assert spread > 0
    tolerance = 1e-5 * min(1.0, spread) if method.needs_training else 0.0
    _check_scores_are_numbers(ranker, scores, histories)
    _check_batch_size_changes_nothing(ranker, city, scores, tolerance)
    _check_candidates_are_columns(ranker, histories, scores, tolerance)
    _check_histories_are_not_mutated(ranker, city)
    if not settings:
        start = preset or method.default_preset
        check_numbers(f"{method.name} {start}" if start else method.name, method, scores)
    return ranker


def scores_of(method: Method, preset: str | None) -> NDArray[np.float32]:
    """The scores that `check_scores` compares with the stored ones."""
    return _score(_fit(method, odd_city(), preset), _histories(odd_city()))


def _fit(
    method: Method,
    city: City,
    preset: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> SavableRanker[Any]:
    if not method.needs_training:
        return fit(city, method, seed=7).ranker
    brief = {"epochs": "2"} if "epochs" in settings_of(method) else {}
    options = TrainingOptions(preset=preset, settings={**brief, **(settings or {})})
    return fit(city, method, seed=7, options=options).ranker


def _check_scores_are_numbers(
    ranker: SavableRanker[Any], scores: NDArray[np.float32], histories: Histories
) -> None:
    lengths = histories.lengths.tolist()
    assert {0, 1} <= set(lengths), "the contract needs an empty and a one-visit history"
    assert scores.shape == (len(histories), ranker.places)
    assert scores.dtype == np.float32
    assert np.isfinite(scores).all()


def _check_test_targets_change_nothing(
    ranker: SavableRanker[Any], moved: SavableRanker[Any]
) -> None:
    """A ranker of the same seed is the same wherever and whenever the test targets are."""
    assert moved.arrays.keys() == ranker.arrays.keys()
    for name, weight in ranker.arrays.items():
        np.testing.assert_array_equal(np.asarray(moved.arrays[name]), np.asarray(weight))


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


def _check_histories_are_not_mutated(ranker: SavableRanker[Any], city: City) -> None:
    histories, untouched = _histories(city), _histories(city)
    _score(ranker, histories)
    for name in ("place", "at_us", "offset_minutes", "bounds"):
        np.testing.assert_array_equal(getattr(histories, name), getattr(untouched, name))


def _histories(city: City) -> Histories:
    return city.trajectories.histories_before(city.targets(record.TEST))


def _score(ranker: SavableRanker[Any], histories: Histories) -> NDArray[np.float32]:
    return ranker.score(ranker.encode(histories))
