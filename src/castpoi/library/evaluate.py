"""Evaluation from Python: of a trained model, a counting baseline, your own model, or lists."""

from os import PathLike
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.checkins.reading.layouts import column_of
from castpoi.checkins.trajectory import Histories
from castpoi.core.errors import BadInput, did_you_mean
from castpoi.core.frames import as_frame, is_frame, texts
from castpoi.core.progress import Progress
from castpoi.evaluation.evaluate import evaluate as evaluate_ranker
from castpoi.evaluation.result import Result
from castpoi.experiments.evaluate import evaluate_counted, evaluate_run
from castpoi.library.own import NO_SEEDS, OwnRanker, own_ranker
from castpoi.library.progress import shown
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
