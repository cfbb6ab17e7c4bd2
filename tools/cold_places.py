"""How well places are ranked that opened after training.

    python tools/cold_places.py CITY --seed 42 --out results/cold-places/nyc.json

A tenth of the places of CITY, drawn by the seed, is left out of training altogether, with all of
their check-ins. castpoi-next with shared vectors is trained on the rest, and the places are added
to it by coordinates and category alone. Targets are the validation and test visits to them, whose
histories have no visit to such a place either, since it has just opened. They are ranked among all
places by the model and by three lists that do not know how popular a place is:

    nearest           nearest to the last visit first
    own categories    the same, but places of categories that the person has visited come first
    twin              each new place directly after the known place nearest to it, by the model

The file OUT keeps other seeds; a seed that it has already is replaced.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.checkins.trajectory import Histories
from castpoi.core.provenance import Stopwatch
from castpoi.evaluation.metrics import metrics_of
from castpoi.evaluation.ranking import mid_ranks
from castpoi.methods.ranker import SavableRanker, TakesNewPlaces
from castpoi.methods.registry import METHODS
from castpoi.model.distances import unit_vectors
from castpoi.training.job import TrainingOptions
from castpoi.training.train import fit

SHARE: Final = 0.1
_AT_ONCE: Final = 256
_JUST_AFTER: Final = 1e-4

Scores = NDArray[np.float32]


def without_places(city: City, is_cold: NDArray[np.bool_]) -> City:
    """The city as if some of its places did not exist; the others keep their order."""
    number = np.cumsum(~is_cold) - 1
    place = city.checkins[record.PLACE].to_numpy()
    kept = pl.Series(~is_cold[place])
    renumbered = pl.Series(number[place]).cast(city.checkins.schema[record.PLACE])
    known = city.places.filter(pl.Series(~is_cold))
    return replace(
        city,
        checkins=city.checkins.with_columns(renumbered.alias(record.PLACE)).filter(kept),
        places=known.with_columns(
            pl.Series(record.PLACE, np.arange(known.height)).cast(known.schema[record.PLACE])
        ),
        split=city.split.filter(kept),
    )


def with_cold(ranker: SavableRanker[Any], city: City, is_cold: NDArray[np.bool_]) -> Any:
    """The ranker with the cold places after its own."""
    assert isinstance(ranker, TakesNewPlaces)
    cold = city.places.filter(pl.Series(is_cold))
    return ranker.with_places(
        cold[record.LAT].to_numpy(), cold[record.LON].to_numpy(), cold[record.CATEGORY].to_list()
    )


def histories_and_targets(
    city: City, is_cold: NDArray[np.bool_]
) -> tuple[Histories, NDArray[np.int64]]:
    """Histories before the visits to cold places, without visits to such; the target places."""
    order = np.r_[np.flatnonzero(~is_cold), np.flatnonzero(is_cold)]
    number = np.argsort(order)  # of each place of the city among known places, then cold ones
    trajectories = city.trajectories
    rows = np.sort(np.r_[city.targets(record.VALIDATION), city.targets(record.TEST)])
    rows = rows[is_cold[trajectories.place[rows]]]
    histories = trajectories.histories_before(rows)
    histories = replace(histories, place=number[histories.place])
    known = int((~is_cold).sum())
    kept = histories.place < known
    bounds = np.concatenate([[0], np.cumsum(kept)])[histories.bounds]
    histories = replace(
        histories,
        place=histories.place[kept],
        at_us=histories.at_us[kept],
        offset_minutes=histories.offset_minutes[kept],
        bounds=bounds,
    )
    return histories, number[trajectories.place[rows]]


def part_of(histories: Histories, start: int, end: int) -> Histories:
    """Some of the histories."""
    visits = slice(histories.bounds[start], histories.bounds[end])
    return replace(
        histories,
        place=histories.place[visits],
        at_us=histories.at_us[visits],
        offset_minutes=histories.offset_minutes[visits],
        bounds=histories.bounds[start : end + 1] - histories.bounds[start],
    )


class Rivals:
    """The scores of the three lists."""

    def __init__(self, city: City, is_cold: NDArray[np.bool_]) -> None:
        order = np.r_[np.flatnonzero(~is_cold), np.flatnonzero(is_cold)]
        points = unit_vectors(city.lat[order], city.lon[order])  # [P, 3]
        known = int((~is_cold).sum())
        self.points = points
        self.category = city.places[record.CATEGORY].fill_null("").to_numpy()[order]
        self.twin = (points[known:] @ points[:known].T).argmax(axis=1)  # of each cold place

    def nearest(self, histories: Histories) -> Scores:
        """The nearness of every place to the last visit. [B, P]"""
        return (self.points[histories.last_place] @ self.points.T).astype(np.float32)

    def own_categories(self, histories: Histories) -> Scores:
        """The same, but places of categories of the history are before all others. [B, P]"""
        scores = self.nearest(histories)
        for row, (start, end) in enumerate(
            zip(histories.bounds[:-1], histories.bounds[1:], strict=True)
        ):
            own = np.unique(self.category[histories.place[start:end]])
            scores[row] += 2.0 * np.isin(self.category, own)
        return scores

    def twins(self, model: Scores) -> Scores:
        """The model's scores of known places; each cold place is just after its twin. [B, P]"""
        scores = model.copy()
        scores[:, -len(self.twin) :] = model[:, self.twin] - _JUST_AFTER
        return scores


def measured(city: City, seed: int) -> dict[str, Any]:
    """Metrics of the model and of the three lists, for one draw of places and one training."""
    draws = np.random.default_rng(seed)
    is_cold = np.zeros(city.places.height, dtype=np.bool_)
    is_cold[draws.permutation(len(is_cold))[: round(SHARE * len(is_cold))]] = True
    settings = {"shared_vectors": "true", "threads": "1"}
    run = fit(
        without_places(city, is_cold),
        METHODS.named("castpoi-next"),
        seed=seed,
        options=TrainingOptions(settings=settings),
    )
    ranker, rivals = with_cold(run.ranker, city, is_cold), Rivals(city, is_cold)
    histories, target = histories_and_targets(city, is_cold)
    has_visits = histories.lengths > 0
    ranks: dict[str, list[NDArray[np.float64]]] = {}
    for start in range(0, len(target), _AT_ONCE):
        end = min(start + _AT_ONCE, len(target))
        some = part_of(histories, start, end)
        model = ranker.score(ranker.encode(some))
        lists = {
            "castpoi-next": model,
            "nearest": rivals.nearest(some),
            "own categories": rivals.own_categories(some),
            "twin": rivals.twins(model),
        }
        for name, scores in lists.items():
            ranks.setdefault(name, []).append(mid_ranks(scores, target[start:end], method=name))
    found = {name: np.concatenate(each)[has_visits] for name, each in ranks.items()}
    return {
        "targets": int(has_visits.sum()),
        "cold_places": int(is_cold.sum()),
        "lists": {name: metrics_of(each) for name, each in found.items()},
    }


def main() -> None:
    """Measure one seed and write it into OUT."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("city", type=Path)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    city, work = City.load(options.city), Stopwatch()
    table = json.loads(options.out.read_text()) if options.out.exists() else {}
    if table.get("fingerprint", city.fingerprint) != city.fingerprint:
        raise SystemExit(f"{options.out} is of another city; choose another --out")
    table["fingerprint"] = city.fingerprint
    seeds = table.setdefault("seeds", {})
    seeds[str(options.seed)] = {**measured(city, options.seed), **work.provenance()}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
