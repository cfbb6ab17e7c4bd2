"""Models of your own: a class with `fit` and `score`, or a function of one history.

    class Mine:
        def fit(self, city): ...               # optional; the city ends before the targets
        def score(self, histories): ...        # a score for every place, [histories, places]

    def mine(history): ...                     # a score for every place, [places]

Shapes: B histories, P places, C candidates, T visits of one history.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.checkins.record import MINUTE_US
from castpoi.checkins.trajectory import Histories, hour_of, weekday_of
from castpoi.core.errors import BadInput, BadScores
from castpoi.methods.ranker import Ranker

NO_SEEDS: Final = "no_seeds"
"""Entry of a result's manifest: the method does not train, so its ranks do not depend on a seed."""
_HOW: Final = (
    "give the name of a method, a trained model, the folder of a run, an object with "
    "`score(histories)` and optionally `fit(city)`, or a function of one history"
)


@dataclass(frozen=True, kw_only=True)
class History:
    """The visits of one person, oldest first, for a scoring function."""

    place: NDArray[np.int64]
    """Number of each visited place: its row in `city.places`. [T]"""
    at_us: NDArray[np.int64]
    """Time of each visit, UTC microseconds. [T]"""
    offset_minutes: NDArray[np.int64]
    """Local time minus UTC at each visit. [T]"""
    user: int | None
    """Number of the user: a row in `city.users`; None for an unknown user."""

    def __len__(self) -> int:
        return len(self.place)

    @property
    def hour(self) -> NDArray[np.float64]:
        """Local time of day of each visit, from 0 to below 24. [T]"""
        return hour_of(self._local_us)

    @property
    def weekday(self) -> NDArray[np.int64]:
        """Local day of the week of each visit; Monday is 0. [T]"""
        return weekday_of(self._local_us)

    @property
    def _local_us(self) -> NDArray[np.int64]:
        return self.at_us + self.offset_minutes * MINUTE_US


class OwnRanker:
    """The ranker of your own model; `encode` computes the scores of a whole block."""

    def __init__(self, score: Callable[[Histories], Any], *, places: int, name: str) -> None:
        self._score = score
        self.places = places
        self.name = name

    def encode(self, histories: Histories) -> NDArray[np.float32]:
        """The scores of all places. [B, P]"""
        scores = self._score(histories)
        try:
            return np.asarray(scores, dtype=np.float32)
        except (TypeError, ValueError) as problem:
            raise BadScores(
                f"{self.name} returned scores that are not an array of numbers ({problem}); return "
                f"one of shape ({len(histories)}, {self.places}): a score for every place"
            ) from problem

    def score(
        self, state: NDArray[np.float32], candidates: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        """Those of all places, or of candidates shared by all histories. [B, P] or [B, C]"""
        return state if candidates is None else state[:, candidates]


def own_ranker(model: object, city: City, *, part: str, name: str) -> Ranker[Any]:
    """The ranker of your own object, fitted to the check-ins before the split to predict.

    Raises:
        BadInput: the object cannot be used as a model.
    """
    if isinstance(model, type):
        raise BadInput(f"{model.__name__} is a class; give an object of it: {model.__name__}()")
    if hasattr(model, "encode") and hasattr(model, "score"):
        return cast("Ranker[Any]", model)
    places = city.places.height
    if hasattr(model, "score"):
        fitted = model
        if hasattr(model, "fit"):
            fitted = model.fit(city_before(city, part)) or model
        return OwnRanker(fitted.score, places=places, name=name)
    if callable(model):
        return OwnRanker(_one_by_one(model), places=places, name=name)
    raise BadInput(f"a {type(model).__name__} is not a model; {_HOW}")


def city_before(city: City, part: str) -> City:
    """The city without the check-ins that are to be predicted, or that are later.

    Places and users keep their numbers. Fingerprint and counts are those of the whole city.
    """
    before = record.PARTS[: record.PARTS.index(part)]
    kept = city.split.select(pl.col(record.PART).cast(pl.String).is_in(before)).to_series()
    row = pl.int_range(int(kept.sum()), dtype=pl.UInt32, eager=True).alias(record.CHECKIN)
    return replace(
        city,
        checkins=city.checkins.filter(kept).with_columns(row),
        split=city.split.filter(kept).with_columns(row),
    )


def _one_by_one(function: Callable[[History], Any]) -> Callable[[Histories], list[Any]]:
    def score(histories: Histories) -> list[Any]:
        bounds = histories.bounds.tolist()
        return [
            function(
                History(
                    place=histories.place[start:end],
                    at_us=histories.at_us[start:end],
                    offset_minutes=histories.offset_minutes[start:end],
                    user=None if histories.user is None else int(histories.user[number]),
                )
            )
            for number, (start, end) in enumerate(pairwise(bounds))
        ]

    return score
