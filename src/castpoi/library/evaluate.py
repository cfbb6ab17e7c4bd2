"""Evaluation from Python: of a trained model, a counting baseline, your own model, or lists.

Your own model is a class with `fit` and `score`, or a function of one history:

    class Mine:
        def fit(self, city): ...               # optional; the city ends before the targets
        def score(self, histories): ...        # a score for every place, [histories, places]

    def mine(history): ...                     # a score for every place, [places]

Shapes: B histories, P places, C candidates, T visits of one history.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.checkins.reading.layouts import column_of
from castpoi.checkins.record import MINUTE_US
from castpoi.checkins.trajectory import Histories, hour_of, weekday_of
from castpoi.core.errors import BadInput, BadScores, did_you_mean
from castpoi.core.frames import as_frame, is_frame, texts
from castpoi.core.progress import Progress
from castpoi.evaluation.evaluate import evaluate as evaluate_ranker
from castpoi.evaluation.result import Result
from castpoi.experiments.evaluate import evaluate_counted, evaluate_run
from castpoi.library.progress import shown
from castpoi.methods.ranker import Ranker
from castpoi.methods.registry import METHODS
from castpoi.recommend.input_files import read_frame
from castpoi.recommend.recommender import Recommender, load

_RANK: Final = "rank"
_SCORE: Final = "score"


def evaluate(
    model: Any,
    city: City | str | PathLike[str] | None = None,
    *,
    name: str | None = None,
    split: str = "test",
    seed: int = 0,
    progress: Progress | None = None,
) -> Result:
    """Rank every target of a split among all places of the city.

    `model` is a trained model, the folder of a run, the name of a counting baseline such as
    "revisit", or a model of your own (docs/own-model.md). A trained model needs no `city`.
    `split` is "test" or "validation". To write the result, call `result.save(folder)`.
    """
    progress = progress or shown()
    if isinstance(city, str | PathLike):
        city = City.load(Path(city))
    if isinstance(model, PathLike) or (isinstance(model, str) and model not in METHODS.names):
        if not Path(model).exists():
            guess = did_you_mean(str(model), METHODS.names)
            raise BadInput(
                f"'{model}' is neither a method nor the folder of a run; {guess}the methods are "
                f"{', '.join(METHODS.names)}"
            )
        model = load(model)
    if isinstance(model, Recommender):
        return evaluate_run(model.run, city or model.city, part=split, progress=progress)
    if city is None:
        raise BadInput("this model has no city of its own; give it: castpoi.evaluate(model, city)")
    if isinstance(model, str):
        if METHODS.named(model).needs_training:
            raise BadInput(
                f"{model} needs training; give castpoi.train(city, model={model!r}) instead"
            )
        return evaluate_counted(model, city, part=split, progress=progress)
    name = name or str(getattr(model, "__name__", type(model).__name__))
    ranker = own_ranker(model, city, part=split, name=name)
    origin = {NO_SEEDS: not hasattr(model, "fit") and isinstance(ranker, OwnRanker)}
    return evaluate_ranker(
        ranker, city, method=name, seed=seed, part=split, origin=origin, progress=progress
    )


def evaluate_lists(
    lists: Any, city: City, *, name: str = "lists", split: str = "test", seed: int = 0
) -> Result:
    """Evaluate lists of places that were made elsewhere, under the same protocol.

    `lists` is a frame, or a csv, jsonl or parquet file, with the columns user and place (or other
    usual names), and either rank (1 is best) or score (higher is better). Ids are those of the
    city. A list need not name all places: the others are tied below it. A user without a list is an
    error. The list of a user is used for all targets of that user.
    """
    table = _lists_of(lists, city)
    columns = (record.USER, record.PLACE, _RANK)
    owner, place, position = (table[name].to_numpy() for name in columns)
    missing = np.setdiff1d(city.trajectories.user[city.targets(split)], owner)
    if len(missing):
        raise BadInput(
            f"the lists have no places for {len(missing):,} of the users with a {split} target; "
            "make a list for every user of the city"
        )
    starts = np.searchsorted(owner, np.arange(city.users.height + 1))
    lowest = -float(len(table) + 1)

    def score(histories: Histories) -> NDArray[np.float32]:
        scores = np.full((len(histories), city.places.height), lowest, dtype=np.float32)
        assert histories.user is not None
        for row, user in enumerate(histories.user.tolist()):
            own = slice(starts[user], starts[user + 1])
            scores[row, place[own]] = -position[own]
        return scores

    ranker = OwnRanker(score, places=city.places.height, name=name)
    return evaluate_ranker(ranker, city, method=name, seed=seed, part=split)


def _lists_of(lists: Any, city: City) -> pl.DataFrame:
    """Numbers of user and place, with the position in the user's list from 0, sorted by user.

    Equal ranks share a position.
    """
    frame = as_frame(lists, what="lists") if is_frame(lists) else read_frame(Path(lists))
    ordered_by = next((name for name in (_RANK, _SCORE) if name in frame.columns), None)
    user, place = (column_of(frame.columns, word) for word in ("user", "place"))
    if user is None or place is None or ordered_by is None:
        raise BadInput(
            f"the lists have the columns {', '.join(frame.columns)}; they need user, place, and "
            "rank or score"
        )
    numbers = {
        record.USER: _numbers(frame[user], city.users[record.USER_ID], record.USER),
        record.PLACE: _numbers(frame[place], city.places[record.PLACE_ID], record.PLACE),
    }
    order = frame[ordered_by].cast(pl.Float64, strict=False)
    if order.is_null().any() or not order.is_finite().all():
        raise BadInput(f"the column {ordered_by} of the lists has values that are not numbers")
    table = pl.DataFrame({**numbers, _RANK: order if ordered_by == _RANK else -order})
    if table.select(record.USER, record.PLACE).is_duplicated().any():
        raise BadInput("the lists name a place twice for one user; leave one out")
    position = pl.col(_RANK).rank("dense").over(record.USER) - 1
    return table.with_columns(position.cast(pl.Float32)).sort(record.USER)


def _numbers(ids: pl.Series, known: pl.Series, what: str) -> pl.Series:
    """The number in the city of each id."""
    number = pl.Series(texts(ids)).replace_strict(
        known, np.arange(len(known)), default=None, return_dtype=pl.Int64
    )
    unknown = int(number.is_null().sum())
    if unknown:
        raise BadInput(
            f"{unknown:,} rows of the lists have a {what} that is not in the city; use the ids of "
            "the table that the city was prepared from"
        )
    return number


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
