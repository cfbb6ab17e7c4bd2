"""The training plan of a sequence model: configs, objective, ranker."""

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
from castpoi.core.progress import Progress
from castpoi.training.config import SequenceTraining
from castpoi.training.log import Log
from castpoi.training.objectives import Objective
from castpoi.training.objectives.cloze import ClozeObjective
from castpoi.training.objectives.next_place import PrefixObjective, WindowObjective
from castpoi.training.train import TrainingOptions
from castpoi.training.trainer import TrainingPlan, run_plan


def train_sequence(
    city: City,
    *,
    part: str,
    seed: int,
    log: Log,
    progress: Progress,
    options: TrainingOptions,
) -> SequenceRanker:
    """Train a sequence model on the train split and keep the epoch that is best on validation."""
    method = options.method
    model, training = configs(method, options.preset or "paper", options.settings)
    plan = sequence_plan(city, method, model, training, seed=seed)
    trained, summary = run_plan(
        plan, city, part=part, seed=seed, log=log, progress=progress, options=options
    )
    return SequenceRanker(trained, method=method, training=summary)


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


def sequence_plan(
    city: City, method: str, model: SequenceConfig, training: SequenceTraining, *, seed: int
) -> TrainingPlan[SequenceModel]:
    """The training plan of a sequence model."""
    places = city.places.height
    return TrainingPlan(
        method=method,
        model_config=model.to_dict(),
        config=training,
        new_model=lambda: new_model(method, config=model, places=places, seed=seed),
        objective=lambda: objective_of(model_class(method), city, model, training, seed=seed),
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
    return objective(city, window=model.window, config=training, seed=seed)
