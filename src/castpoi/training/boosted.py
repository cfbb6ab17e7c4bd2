"""Training of boosted trees: LambdaMART over the candidates of the last targets of every user.

An epoch is one tree. The number of trees with the best validation MRR is kept.

Shapes: B targets, E (target, candidate) pairs, F features.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from castpoi.baselines.boosted.pairs import Crowd, Features, nearest_places
from castpoi.baselines.boosted.ranker import BoostedRanker, lightgbm
from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.checkins.trajectory import Histories, Trajectories, slices
from castpoi.core.arrays import Numbers
from castpoi.core.config import Config, Count, Positive, Share, Size, changed, preset_named
from castpoi.core.errors import TooFewCheckins
from castpoi.evaluation.metrics import metrics_of
from castpoi.evaluation.ranking import rank_targets
from castpoi.model.config import REVISIT_WINDOW
from castpoi.training.job import TrainingJob
from castpoi.training.trainer import check_city

_AT_ONCE: Final = 256
"""Targets whose features are computed at once; bounds the memory."""
_PAIRS_PER_LEAF: Final = 200
"""A leaf needs at most one in this number of all pairs; lowers `leaf_pairs` in a tiny city."""


@dataclass(frozen=True, kw_only=True)
class BoostedConfig(Config):
    """The settings of the features."""

    window: Size = REVISIT_WINDOW
    """Number of last visits that the visit-pattern features count."""


@dataclass(frozen=True, kw_only=True)
class BoostedTraining(Config):
    """The settings of the trees."""

    epochs: Count = 400
    """Largest number of trees."""
    patience: Count = 40
    """Trees without a better validation MRR after which training ends."""
    targets: Count = 20_000
    """Total number of train targets: the last ones of every user, equally many of each."""
    learning_rate: Positive = 0.08
    """Weight of each tree."""
    leaves: Size = 31
    """Largest number of leaves of a tree."""
    leaf_pairs: Count = 50
    """Smallest number of (target, candidate) pairs in a leaf."""
    feature_share: Share = 0.7
    """Share of the features that a tree may use, drawn for each tree."""
    select_by: Literal["MRR"] = "MRR"
    """Validation metric that selects the number of trees."""
    threads: Count | None = None
    """Cores to use; none for all."""


class Examples(NamedTuple):
    """The candidates of some targets, as LightGBM reads them."""

    features: Features  # [E, F]
    is_target: NDArray[np.bool_]  # [E]
    sizes: Numbers  # number of candidates of each target [B]

    @property
    def owner(self) -> Numbers:
        """Number of the target of each pair. [E]"""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @property
    def found(self) -> NDArray[np.bool_]:
        """Whether the place of each target is among its candidates. [B]"""
        return np.bincount(self.owner[self.is_target], minlength=len(self.sizes)) > 0

    def only_found(self) -> "Examples":
        """Drop the targets that are not among their candidates; they have no gradient."""
        found = self.found
        kept = found[self.owner]
        return Examples(self.features[kept], self.is_target[kept], self.sizes[found])


def configs(
    method: str, preset: str, settings: Mapping[str, object]
) -> tuple[BoostedConfig, BoostedTraining]:
    """The configs of features and trees: the preset with some settings changed.

    Raises:
        BadInput: a setting is unknown or cannot be read.
    """
    preset_named({"tuned": method}, preset)
    return changed(BoostedConfig(), BoostedTraining(), settings)


def train_boosted(city: City, job: TrainingJob) -> BoostedRanker:
    """Train boosted trees and keep the number of trees that is best on validation."""
    check_city(city)
    job.check_cpu()
    lightgbm()  # fail before the features are computed
    began = perf_counter()
    config, training = configs(job.method, job.options.preset or "tuned", job.options.settings)
    ranker = _without_trees(city, config)
    trajectories = city.train_trajectories
    rows = last_targets(trajectories, training.targets)
    train = examples(ranker, trajectories, rows, leave_user_out=True).only_found()
    if not len(train.sizes):
        raise TooFewCheckins(
            "no train target is among its candidates, so there is nothing to learn from; prepare "
            "the city again from more check-ins"
        )
    rows = city.targets(record.VALIDATION)
    validation = examples(ranker, city.trajectories, rows, leave_user_out=False)
    job.log.event("training started", targets=len(train.sizes), pairs=len(train.is_target))
    trees, epochs, best = _grow(train, validation, training, job)
    ranker = replace(ranker, trees=trees)
    ranks = rank_targets(ranker, city.trajectories, rows, method=f"{job.method} in training")
    summary = {
        "settings": training.to_dict(),
        "epochs": epochs,
        "best_epoch": best,
        "validation": metrics_of(ranks) if len(rows) else {},
        "seconds": round(perf_counter() - began, 3),
    }
    job.log.event("training finished", epochs=epochs, best_epoch=best)
    return replace(ranker, training=summary)


def last_targets(trajectories: Trajectories, most: int) -> Numbers:
    """Rows of the last targets of every user, equally many of each, about `most` in all."""
    user = trajectories.user
    each = -(-most // len(np.unique(user)))
    later = np.searchsorted(user, user, side="right") - 1 - np.arange(len(user))
    return np.flatnonzero((np.arange(len(user)) > trajectories.starts) & (later < each))


def examples(
    ranker: BoostedRanker, trajectories: Trajectories, rows: Numbers, *, leave_user_out: bool
) -> Examples:
    """The candidates of targets; counts exclude all visits of the user, or those before it."""
    features, is_target = [np.empty((0, 0), np.float32)], [np.empty(0, np.bool_)]
    sizes = [np.empty(0, np.int64)]
    for start in range(0, len(rows), _AT_ONCE):
        block = rows[start : start + _AT_ONCE]
        histories = trajectories.histories_before(block)
        own = _whole(trajectories, block) if leave_user_out else histories
        pairs = ranker.pairs(histories, own)
        features.append(pairs.features)
        is_target.append(pairs.place == trajectories.place[block][pairs.owner])
        sizes.append(np.bincount(pairs.owner, minlength=len(block)))
    return Examples(
        np.concatenate(features[1:] or features),
        np.concatenate(is_target),
        np.concatenate(sizes),
    )


def _whole(trajectories: Trajectories, rows: Numbers) -> Histories:
    """All visits of the user of each row, the later ones too."""
    users = trajectories.user[rows]
    starts, ends = (np.searchsorted(trajectories.user, users, side) for side in ("left", "right"))
    visits, bounds = slices(starts, ends)
    return Histories(
        place=trajectories.place[visits],
        at_us=trajectories.at_us[visits],
        offset_minutes=trajectories.offset_minutes[visits],
        bounds=bounds,
    )


def _without_trees(city: City, config: BoostedConfig) -> BoostedRanker:
    """The ranker with all counts and no trees."""
    categories = city.places[record.CATEGORY].to_list()
    number = {name: row for row, name in enumerate(sorted({*filter(None, categories)}))}
    return BoostedRanker(
        lat=city.lat,
        lon=city.lon,
        near=nearest_places(city.lat, city.lon),
        category=np.array([number.get(name, -1) for name in categories]),
        **vars(Crowd.of(city.train, places=city.places.height)),
        trees=np.empty(0, dtype=np.uint8),
        window=config.window,
    )


def _grow(
    train: Examples, validation: Examples, config: BoostedTraining, job: TrainingJob
) -> tuple[NDArray[np.uint8], int, int]:
    """(trees in LightGBM's text format, number of trees grown, number of trees kept)."""
    booster = _booster(train, validation, config, job.seed)
    mrr_of = _mrr_of(validation)
    best, best_mrr, epoch = 0, -1.0, 0
    with job.progress.task("training", total=config.epochs) as task:
        while epoch < config.epochs and epoch - best < config.patience:
            is_finished = booster.update()  # no further split is possible
            epoch += 1
            metrics: dict[str, float] = {}
            if len(validation.sizes):
                ((*_, mrr, _),) = booster.eval_valid(mrr_of)
                metrics = {config.select_by: mrr}
            if not metrics or mrr > best_mrr:
                best, best_mrr = epoch, metrics.get(config.select_by, -1.0)
            job.log.event("epoch finished", epoch=epoch, metrics=metrics)
            task.advance(1)
            if is_finished:
                break
    text = booster.model_to_string(num_iteration=best)
    return np.frombuffer(text.encode(), dtype=np.uint8), epoch, best


def _booster(train: Examples, validation: Examples, config: BoostedTraining, seed: int) -> Any:
    """A booster with its data and no trees."""
    package = lightgbm()
    parameters = {
        "objective": "lambdarank",
        "metric": "None",
        "learning_rate": config.learning_rate,
        "num_leaves": config.leaves,
        "min_data_in_leaf": min(config.leaf_pairs, 1 + len(train.is_target) // _PAIRS_PER_LEAF),
        "feature_fraction": config.feature_share,
        "seed": seed,
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": config.threads or 0,
        "verbosity": -1,
    }
    data = package.Dataset(train.features, train.is_target, group=train.sizes, params=parameters)
    booster = package.Booster(parameters, data)
    if len(validation.sizes):
        more = validation.features, validation.is_target
        booster.add_valid(data.create_valid(*more, group=validation.sizes), "validation")
    return booster


def _mrr_of(examples: Examples) -> Callable[[NDArray[np.float64], Any], tuple[str, float, bool]]:
    """A function that computes the MRR; a target that is not among its candidates adds 0."""
    owner, found = examples.owner, examples.found
    target = np.flatnonzero(examples.is_target)  # of the targets that are found

    def mrr_of(scores: NDArray[np.float64], _: Any) -> tuple[str, float, bool]:
        own = np.full(len(found), np.inf)
        own[found] = scores[target]
        better = np.bincount(owner[scores > own[owner]], minlength=len(found))
        tied = np.bincount(owner[scores == own[owner]], minlength=len(found)) - 1
        return "MRR", float((found / (1 + better + np.maximum(tied, 0) / 2)).mean()), True

    return mrr_of
