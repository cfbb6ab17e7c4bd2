"""How well places are ranked that opened after training.

    python tools/cold_places.py CITY --seed 42 --out results/cold-places/nyc.json

A tenth of the places of CITY, drawn by the seed, is left out of training altogether, with all of
their check-ins. castpoi-next is trained on the rest, and the places are added by coordinates and
category alone, as with `--places`. Targets are the validation and test visits to them, whose
histories have no visit to such a place either, since it has just opened. They are ranked among all
places by the model and by three lists that do not know how popular a place is:

    nearest           nearest to the last visit first
    own categories    the same, but places of categories that the person has visited come first
    twin              each new place directly after the known place nearest to it, by the model

Metrics are of all targets, and of first visits: by a person who had never been there in truth
either. Others know the place already, and their histories lack those visits. Each list is judged
twice: as it is, and as with `new_only`, without the places of the history. The file OUT keeps other
seeds; a seed that it has already is replaced.

Shapes: P places, known ones before new ones; B histories, N targets.
"""

import argparse
import json
from dataclasses import dataclass, replace
from functools import cached_property
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
from castpoi.geo.distance import unit_vectors
from castpoi.methods.ranker import Ranker
from castpoi.methods.registry import METHODS
from castpoi.methods.run import Run
from castpoi.recommend.changed_places import with_cold_places
from castpoi.training.job import TrainingOptions
from castpoi.training.train import fit

MODEL: Final = "castpoi-next"
SHARE: Final = 0.1
SETTINGS: Final = {"threads": "1"}
_AT_ONCE: Final = 256
_JUST_AFTER: Final = 1e-4

Scores = NDArray[np.float32]
Truths = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Targets:
    """The visits to new places."""

    histories: Histories  # without visits to new places
    place: NDArray[np.int64]  # [N]
    is_first: Truths  # the person had never been there [N]

    def __len__(self) -> int:
        return len(self.place)

    def part(self, start: int, end: int) -> "Targets":
        """Those from start to end."""
        laid, some = self.histories, slice(start, end)
        visits = slice(laid.bounds[start], laid.bounds[end])
        return Targets(
            histories=replace(
                laid,
                place=laid.place[visits],
                at_us=laid.at_us[visits],
                offset_minutes=laid.offset_minutes[visits],
                bounds=laid.bounds[start : end + 1] - laid.bounds[start],
            ),
            place=self.place[some],
            is_first=self.is_first[some],
        )


@dataclass(frozen=True, kw_only=True)
class Opening:
    """A city some of whose places are new."""

    city: City
    is_new: Truths  # by the numbers of the city [P]

    @classmethod
    def drawn(cls, city: City, seed: int) -> "Opening":
        """A share of the places, drawn by a seed."""
        is_new = np.zeros(city.places.height, dtype=np.bool_)
        drawn = np.random.default_rng(seed).permutation(len(is_new))
        is_new[drawn[: round(SHARE * len(is_new))]] = True
        return cls(city=city, is_new=is_new)

    @property
    def known(self) -> int:
        """Number of places that are not new."""
        return int((~self.is_new).sum())

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """The places of the city, known ones before new ones. [P]"""
        return np.argsort(self.is_new, kind="stable")

    def before(self) -> City:
        """The city as if the new places did not exist; the others keep their order."""
        city, number = self.city, np.argsort(self.order)
        place = city.checkins[record.PLACE].to_numpy()
        kept = pl.Series(~self.is_new[place])
        renumbered = pl.Series(record.PLACE, number[place]).cast(city.checkins[record.PLACE].dtype)
        known = city.places.filter(pl.Series(~self.is_new))
        places = pl.Series(record.PLACE, range(known.height), dtype=known[record.PLACE].dtype)
        return replace(
            city,
            checkins=city.checkins.with_columns(renumbered).filter(kept),
            places=known.with_columns(places),
            split=city.split.filter(kept),
        )

    def opened(self, run: Run) -> Ranker[Any]:
        """The ranker of a run after the new places were added, as the product adds them."""
        new = self.city.places.filter(pl.Series(self.is_new))
        table = new.select(
            pl.col(record.PLACE_ID).alias("place"), record.LAT, record.LON, record.CATEGORY
        )
        return with_cold_places(run, run.places, table)[0].ranker

    def targets(self) -> Targets:
        """The validation and test visits to the new places."""
        city, number = self.city, np.argsort(self.order)
        laid = city.trajectories
        rows = np.sort(np.r_[city.targets(record.VALIDATION), city.targets(record.TEST)])
        rows = rows[self.is_new[laid.place[rows]]]
        whole, target = laid.histories_before(rows), laid.place[rows]
        been = whole.owner[whole.place == target[whole.owner]]
        kept = ~self.is_new[whole.place]
        histories = replace(
            whole,
            place=number[whole.place[kept]],
            at_us=whole.at_us[kept],
            offset_minutes=whole.offset_minutes[kept],
            bounds=np.concatenate([[0], np.cumsum(kept)])[whole.bounds],
        )
        is_first = ~np.isin(np.arange(len(rows)), been)
        return Targets(histories=histories, place=number[target], is_first=is_first)


class Rivals:
    """The scores of the three lists."""

    def __init__(self, opening: Opening) -> None:
        city, order, known = opening.city, opening.order, opening.known
        self.points = unit_vectors(city.lat[order], city.lon[order])  # [P, 3]
        self.category = city.places[record.CATEGORY].fill_null("").to_numpy()[order]  # [P]
        self.twin = (self.points[known:] @ self.points[:known].T).argmax(axis=1)  # of each new one

    def nearest(self, histories: Histories) -> Scores:
        """The nearness of every place to the last visit. [B, P]"""
        cosines = self.points[histories.last_place] @ self.points.T
        # minus the chord, not the cosine: in float32 the cosines of places within 1 km are equal
        return -np.sqrt(np.maximum(2 - 2 * cosines, 0)).astype(np.float32)

    def own_categories(self, histories: Histories) -> Scores:
        """The same, but places of categories of the history are before all others. [B, P]"""
        scores = self.nearest(histories)
        for row, own in enumerate(np.split(histories.place, histories.bounds[1:-1])):
            scores[row] += 3.0 * np.isin(self.category, np.unique(self.category[own]))
        return scores

    def twins(self, model: Scores) -> Scores:
        """The model's scores of known places; each new place is just after its twin. [B, P]"""
        scores = model.copy()
        scores[:, -len(self.twin) :] = model[:, self.twin] - _JUST_AFTER
        return scores


def new_only(scores: Scores, histories: Histories) -> Scores:
    """The scores with the places of each history after all others. [B, P]"""
    scores = scores.copy()
    scores[histories.owner, histories.place] = scores.min() - 1
    return scores


Ranks = dict[tuple[str, str], NDArray[np.float64]]
"""The ranks of the targets in each list, as it is and with `new_only`. [N] each"""


def ranks_of(opening: Opening, ranker: Ranker[Any], targets: Targets) -> Ranks:
    """The ranks of the targets in all lists."""
    rivals, ranks = Rivals(opening), dict[tuple[str, str], list[NDArray[np.float64]]]()
    for start in range(0, len(targets), _AT_ONCE):
        some = targets.part(start, min(start + _AT_ONCE, len(targets)))
        model = ranker.score(ranker.encode(some.histories))
        lists = {
            MODEL: model,
            "nearest": rivals.nearest(some.histories),
            "own categories": rivals.own_categories(some.histories),
            "twin": rivals.twins(model),
        }
        for name, scores in lists.items():
            for way, each in (("all", scores), ("new_only", new_only(scores, some.histories))):
                found = mid_ranks(each, some.place, method=name)
                ranks.setdefault((way, name), []).append(found)
    return {name: np.concatenate(each) for name, each in ranks.items()}


def measured(city: City, seed: int) -> dict[str, Any]:
    """Metrics of the model and of the three lists, for one draw of places and one training."""
    opening = Opening.drawn(city, seed)
    run = fit(
        opening.before(),
        METHODS.named(MODEL),
        seed=seed,
        options=TrainingOptions(settings=SETTINGS),
    )
    targets = opening.targets()
    ranks = ranks_of(opening, opening.opened(run), targets)
    every = targets.histories.lengths > 0
    found: dict[str, Any] = {"new_places": int(opening.is_new.sum())}
    for title, some in (("all visits", every), ("first visits", every & targets.is_first)):
        found[title] = {"targets": int(some.sum()), "all": {}, "new_only": {}}
        for (way, name), each in ranks.items():
            found[title][way][name] = metrics_of(each[some])
    return found


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
