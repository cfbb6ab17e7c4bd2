"""From a city to a trained sequence model: configs, objective, ranker."""

from collections.abc import Mapping
from typing import Any, Final

from castpoi.baselines.sequence import SequenceModel
from castpoi.baselines.sequence_config import SequenceConfig
from castpoi.baselines.sequence_models import model_class, new_model
from castpoi.baselines.sequence_ranker import SequenceRanker
from castpoi.checkins.city import City
from castpoi.core.config import changed
from castpoi.core.errors import BadInput
from castpoi.core.progress import Progress
from castpoi.training.course import Course, follow
from castpoi.training.objective import Objective
from castpoi.training.sequence_config import SequenceTrainingConfig
from castpoi.training.sequence_objective import PrefixObjective, WindowObjective
from castpoi.training.trainer import Log, TrainingOptions

DEFAULT_PRESET: Final = "paper"


def train_sequence(
    city: City,
    *,
    part: str,
    seed: int,
    log: Log,
    progress: Progress,
    options: TrainingOptions,
) -> SequenceRanker:
    """Learn the next place from the train part, keep the epoch that is best on validation."""
    method, kind = options.method, model_class(options.method)
    shape, plan = configs_of_sequence(method, options.preset or DEFAULT_PRESET, options.settings)
    course: Course[SequenceModel] = Course(
        method=method,
        shape=shape.to_dict(),
        plan=plan,
        new_model=lambda: new_model(method, config=shape, places=city.places.height, seed=seed),
        objective=lambda: objective_of(kind, city, shape, plan, seed=seed),
        ranker=lambda model: SequenceRanker(model, method=method),
    )
    model, training = follow(
        course, city, part=part, seed=seed, log=log, progress=progress, options=options
    )
    return SequenceRanker(model, method=method, training=training)


def configs_of_sequence(
    method: str, preset: str, settings: Mapping[str, str]
) -> tuple[SequenceConfig, SequenceTrainingConfig]:
    """The model and the training of a sequence model: a preset with changes."""
    kind = model_class(method)
    if "stride" in settings and (kind.objective == "cloze" or not kind.all_positions):
        raise BadInput(f"{method} shares no windows, so stride changes nothing; leave it out")
    start = SequenceTrainingConfig.preset(preset, method=method)
    return changed(kind.config_class.preset(preset), start, settings)


def objective_of(
    kind: type[SequenceModel],
    city: City,
    shape: SequenceConfig,
    plan: SequenceTrainingConfig,
    *,
    seed: int,
) -> Objective[Any]:
    """What a model of this kind learns."""
    if kind.objective == "cloze":
        from castpoi.training.cloze_objective import ClozeObjective

        return ClozeObjective(city, shape=shape, config=plan, seed=seed)
    shares_windows = kind.all_positions and plan.stride > 1
    objective = WindowObjective if shares_windows else PrefixObjective
    return objective(city, window=shape.window, config=plan, seed=seed)
