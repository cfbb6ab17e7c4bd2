"""One training from its first step to its best epoch, whatever is trained.

A learned method says what is its own (a `Course`); checkpoints, resuming, validation, the log and
the team are the same for all.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import numpy as np
import torch
from torch import nn

from castpoi import __version__
from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.core.errors import BrokenFolder, TooFewCheckins
from castpoi.core.progress import Progress
from castpoi.evaluation.metrics import Metrics, metrics_of
from castpoi.evaluation.ranking import rank_targets
from castpoi.methods.ranker import Ranker
from castpoi.training.checkpoint import Checkpoint, Workshop
from castpoi.training.device import device_named, orderly
from castpoi.training.distributed import Team, team
from castpoi.training.loop import Surroundings, TrainingLoop, Validate
from castpoi.training.objective import Objective
from castpoi.training.plan import Plan
from castpoi.training.selection import EpochRecord
from castpoi.training.trainer import Log, TrainingOptions

Model = TypeVar("Model", bound=nn.Module)

_THREADS: Final = "threads"


@dataclass(frozen=True, kw_only=True)
class Course(Generic[Model]):
    """What one learned method has of its own."""

    method: str
    shape: dict[str, Any]
    """The config of its model, in JSON's words."""
    plan: Plan
    new_model: Callable[[], Model]
    """The untrained model."""
    objective: Callable[[], Objective[Any]]
    """What it learns."""
    ranker: Callable[[Model], Ranker[Any]]
    """How it ranks while it is trained."""


def follow(
    course: Course[Model],
    city: City,
    *,
    part: str,
    seed: int,
    log: Log,
    progress: Progress,
    options: TrainingOptions,
) -> tuple[Model, dict[str, Any]]:
    """The model with the weights of its best epoch, on the CPU, and how they came about."""
    if city.places.height == 1:
        raise TooFewCheckins(
            "the city has a single place, so there is nothing to choose from; prepare the city "
            "again from more places"
        )
    if not len(city.train_trajectories.rows_with_history):
        raise TooFewCheckins(
            "no user has two check-ins in the train part, so there is nothing to learn from; "
            "prepare the city again from more check-ins"
        )
    device = device_named(options.device)
    with team(device) as crew:
        identity = _identity(course, city, part, seed, options.device, crew)
        workshop, checkpoint = _open(options, identity, crew)
        frame = dict(checkpoint.frame) if checkpoint else _frame(course)
        with orderly(device, threads=frame[_THREADS]):
            model = course.new_model().to(device)
            loop = TrainingLoop(
                model,
                course.objective(),
                _validation(course, city, crew),
                config=course.plan,
                seed=seed,
                around=Surroundings(
                    log=log, progress=progress, team=crew, workshop=workshop, frame=frame
                ),
            )
            _tell_beginning(log, model, frame, crew, checkpoint)
            best = loop.run(checkpoint)
    training = _summary(course.plan, loop.records, best)
    log.event("training finished", **{key: training[key] for key in ("epochs", "best_epoch")})
    return model.cpu(), training


def _identity(
    course: Course[Any], city: City, part: str, seed: int, device: str, crew: Team
) -> dict[str, Any]:
    """What makes two trainings the same, in JSON's words."""
    return {
        "castpoi": __version__,
        "method": course.method,
        "fingerprint": city.fingerprint,
        "part": part,
        "seed": seed,
        "device": device,
        "processes": crew.world.ranks,
        "model": course.shape,
        "training": course.plan.to_dict(),
    }


def _open(
    options: TrainingOptions, identity: Mapping[str, Any], crew: Team
) -> tuple[Workshop | None, Checkpoint | None]:
    """The workshop, and the checkpoint to continue from; what cannot be continued is cleared."""
    if options.workshop is None:
        return None, None
    workshop = Workshop(folder=options.workshop, identity=identity)
    if crew.world.is_first:
        _clear_if_unfit(workshop, options)
    crew.wait()  # nobody reads before the first has decided what stays
    checkpoint = workshop.load()
    crew.wait()
    return workshop, checkpoint


def _clear_if_unfit(workshop: Workshop, options: TrainingOptions) -> None:
    if not options.resume:
        workshop.clear()
        return
    try:
        workshop.load()
    except BrokenFolder as problem:
        options.say(f"{workshop.folder} cannot be continued, {problem}; training starts over")
        workshop.clear()


def _frame(course: Course[Any]) -> dict[str, int]:
    """What this machine decides at the start and must stay: cores."""
    return {_THREADS: course.plan.threads or torch.get_num_threads()}


def _validation(course: Course[Any], city: City, crew: Team) -> Validate:
    """Ranks the validation part, each process its share."""
    rows = city.targets(record.VALIDATION)
    mine = rows[crew.world.rank :: crew.world.ranks]

    def validate(model: nn.Module) -> Metrics:
        if not len(rows):
            return {}
        ranker = course.ranker(model)
        name = f"{course.method} in training"
        ranks = rank_targets(ranker, city.trajectories, mine, method=name)
        return metrics_of(crew.gather(ranks, len(rows)))

    return validate


def _tell_beginning(
    log: Log, model: nn.Module, frame: Mapping[str, int], crew: Team, checkpoint: Checkpoint | None
) -> None:
    """Note the size of the work, and the epochs of a training that is resumed."""
    parameters = sum(weight.numel() for weight in model.parameters())
    log.event("training started", parameters=parameters, processes=crew.world.ranks, **frame)
    if checkpoint is None:
        return
    for each in checkpoint.records:
        log.event("epoch finished", **each.to_dict())
    log.event("training resumed", epochs=len(checkpoint.records))


def _summary(plan: Plan, records: list[EpochRecord], best: EpochRecord) -> dict[str, Any]:
    """How the weights came about, for the record of the run."""
    return {
        "settings": plan.to_dict(),
        "epochs": len(records),
        "best_epoch": best.epoch,
        "validation": best.metrics,
        "seconds": round(float(np.sum([each.seconds for each in records])), 3),
    }
