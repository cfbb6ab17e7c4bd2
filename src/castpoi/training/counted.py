"""Training of counting methods with settings: one pass over the train split, then validation."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, Literal

from castpoi.baselines.learned_counts import LearnedCounts
from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.core.config import Config, changed, preset_named
from castpoi.evaluation.metrics import metrics_of
from castpoi.evaluation.ranking import rank_targets
from castpoi.methods.registry import METHODS
from castpoi.training.job import TrainingJob
from castpoi.training.trainer import check_city


@dataclass(frozen=True, kw_only=True)
class CountedTraining(Config):
    """The settings of counting: there is nothing to train."""

    select_by: Literal["MRR"] = "MRR"
    """Validation metric by which settings are compared."""


def configs(
    method: str, preset: str, settings: Mapping[str, object]
) -> tuple[Config, CountedTraining]:
    """The settings of a method: the preset with some of them changed.

    Raises:
        BadInput: a setting is unknown or cannot be read.
    """
    config = preset_named({"tuned": _class_of(method).config_class()}, preset)
    return changed(config, CountedTraining(), settings)


def train_counted(city: City, job: TrainingJob) -> LearnedCounts:
    """Count the train split, and rank the validation split for the record."""
    check_city(city)
    job.check_cpu()
    began = perf_counter()
    config, _ = configs(job.method, job.options.preset or "tuned", job.options.settings)
    places = city.places.height
    ranker = _class_of(job.method).learn(city.train, places=places, config=config)
    job.log.event("train split counted", places=places)
    rows = city.targets(record.VALIDATION)
    ranks = rank_targets(ranker, city.trajectories, rows, method=job.method, progress=job.progress)
    summary = {
        "epochs": 1,
        "best_epoch": 1,
        "validation": metrics_of(ranks) if len(rows) else {},
        "seconds": round(perf_counter() - began, 3),
    }
    return replace(ranker, training=summary)


def _class_of(method: str) -> type[LearnedCounts]:
    found: Any = METHODS.named(method).ranker_class()
    return found
