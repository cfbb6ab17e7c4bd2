"""Training of sequence models: their configs, plan and objective."""

from collections.abc import Mapping
from typing import Any

from castpoi.baselines.sequence import (
    SequenceConfig,
    SequenceModel,
    SequenceRanker,
    model_class,
    new_model,
)
from castpoi.checkins.city import City
from castpoi.core.config import changed
from castpoi.core.errors import BadInput
from castpoi.training.config import SequenceTraining
from castpoi.training.job import TrainingJob
from castpoi.training.objectives import Objective
from castpoi.training.objectives.cloze import ClozeObjective
from castpoi.training.objectives.next_place import PrefixObjective, WindowObjective
from castpoi.training.trainer import TrainingPlan, run_plan


def train_sequence(city: City, job: TrainingJob) -> SequenceRanker:
    """Train a sequence model and keep the epoch that is best on validation."""
    model, training = configs(job.method, job.options.preset or "paper", job.options.settings)
    plan = plan_of(city, job.method, model, training, seed=job.seed)
    trained, summary = run_plan(plan, city, job)
    return SequenceRanker(trained, method=job.method, training=summary)


def configs(
    method: str, preset: str, settings: Mapping[str, object]
) -> tuple[SequenceConfig, SequenceTraining]:
    """The configs of model and training: a preset with some settings changed.

    Raises:
        BadInput: a setting is unknown, cannot be read, or has no effect.
    """
    kind = model_class(method)
    if "stride" in settings and (kind.objective == "cloze" or not kind.all_positions):
        raise BadInput(f"{method} shares no windows, so stride changes nothing; leave it out")
    training = SequenceTraining.preset(preset, method=method)
    return changed(kind.config_class.preset(preset), training, settings)


def plan_of(
    city: City, method: str, model: SequenceConfig, training: SequenceTraining, *, seed: int
) -> TrainingPlan[SequenceModel]:
    """The training plan of a sequence model."""
    places, kind = city.places.height, model_class(method)
    return TrainingPlan(
        model_config=model.to_dict(),
        config=training,
        new_model=lambda: new_model(method, config=model, places=places, seed=seed),
        objective=lambda: objective_of(kind, city, model, training, seed=seed),
        ranker=lambda trained: SequenceRanker(trained, method=method),
    )


def objective_of(
    kind: type[SequenceModel],
    city: City,
    model: SequenceConfig,
    training: SequenceTraining,
    *,
    seed: int,
) -> Objective[Any]:
    """The objective of a sequence model of this class."""
    if kind.objective == "cloze":
        return ClozeObjective(city, model=model, config=training, seed=seed)
    shares_windows = kind.all_positions and training.stride > 1
    objective = WindowObjective if shares_windows else PrefixObjective
    return objective(city, window=model.window, config=training, seed=seed, times=kind.reads_times)
