"""Training of a network and boosted trees whose scores are summed.

Each is trained on its own; the weight of the trees is the one with the best validation MRR.

Shapes: B targets, P places, W weights.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from castpoi.baselines.boosted.ranker import lightgbm
from castpoi.baselines.boosted.with_network import NetworkAndTrees
from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.evaluation.metrics import metrics_of
from castpoi.evaluation.ranking import mid_ranks, scored_blocks
from castpoi.model.config import ModelConfig
from castpoi.training import castpoi
from castpoi.training.boosted import train_boosted
from castpoi.training.config import CastPoiTraining
from castpoi.training.job import TrainingJob

WEIGHTS: Final = np.arange(10) / 10
"""The weights of the trees that are tried."""
_NETWORK: Final = "castpoi-next"
_WEIGHT: Final = 0.5  # without a validation split
_TREES: Final = "150"  # without a validation split


def configs(
    method: str, preset: str, settings: Mapping[str, object]
) -> tuple[ModelConfig, CastPoiTraining]:
    """The configs of the network: a preset with some settings changed; the trees have theirs.

    Raises:
        BadInput: a setting is unknown, cannot be read, or contradicts another.
    """
    return castpoi.configs(_NETWORK, preset, settings)


def train_both(city: City, job: TrainingJob) -> NetworkAndTrees:
    """Train a network and boosted trees, and weigh them by the validation split."""
    job.check_cpu()
    lightgbm()  # fail before the network is trained
    network = castpoi.train_castpoi(city, replace(job, method=_NETWORK))
    rows = city.targets(record.VALIDATION)
    settings = {} if len(rows) else {"epochs": _TREES}
    if "threads" in job.options.settings:
        settings["threads"] = job.options.settings["threads"]
    options = replace(job.options, preset="tuned", settings=settings)
    trees = train_boosted(city, replace(job, method="boosted", options=options))
    both = NetworkAndTrees(network=network, trees=trees, weight=_WEIGHT)
    if not len(rows):
        return both
    ranks = _ranks(both, city, rows)
    best = int(np.argmax((1 / ranks).mean(axis=1)))
    validation = metrics_of(ranks[best])
    job.log.event("weight chosen", weight=WEIGHTS[best], metrics=validation)
    network.training.update(
        validation=validation,
        seconds=round(network.training["seconds"] + trees.training["seconds"], 3),
    )
    return replace(both, weight=float(WEIGHTS[best]))


def _ranks(both: NetworkAndTrees, city: City, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """The rank of every target with each weight. [B] -> [W, B]"""
    parts: list[Any] = [
        scored_blocks(ranker, city.trajectories, rows, method=ranker_name)
        for ranker, ranker_name in ((both.network, _NETWORK), (both.trees, "boosted"))
    ]
    ranks = [
        [mid_ranks(((1 - w) * network + w * trees).astype(np.float32), target) for w in WEIGHTS]
        for (network, target), (trees, _) in zip(*parts, strict=True)
    ]
    return np.concatenate(ranks, axis=1)
