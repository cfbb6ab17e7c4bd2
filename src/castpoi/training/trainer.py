"""One training from its first step to its best epoch, whatever is trained.

A learned method adds a `TrainingPlan`; checkpoints, resuming, validation, the log and distributed
training are the same for all.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

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
from castpoi.training.checkpoint import Checkpoint, Checkpoints, EpochRecord
from castpoi.training.config import TrainingConfig
from castpoi.training.device import device_named, orderly
from castpoi.training.distributed import Team, team
from castpoi.training.log import Log
from castpoi.training.loop import TrainingContext, TrainingLoop, Validate
from castpoi.training.objectives import Objective
from castpoi.training.train import TrainingOptions

Model = TypeVar("Model", bound=nn.Module)


@dataclass(frozen=True, kw_only=True)
class TrainingPlan(Generic[Model]):
    """All that a learned method adds to a training."""

    method: str
    model_config: Mapping[str, Any]  # for JSON
    config: TrainingConfig
    new_model: Callable[[], Model]  # untrained
    objective: Callable[[], Objective[Any]]
    ranker: Callable[[Model], Ranker[Any]]  # ranks the validation split


def run_plan(
    plan: TrainingPlan[Model],
    city: City,
    *,
    part: str,
    seed: int,
    log: Log,
    progress: Progress,
    options: TrainingOptions,
) -> tuple[Model, dict[str, Any]]:
    """The model with the weights of its best epoch, on the CPU, and a summary of its training."""
    _check_city(city)
    device = device_named(options.device)
    with team(device) as crew:
        identity = _identity(plan, city, part, seed, options.device, crew)
        checkpoints, checkpoint = _open(options, identity, crew)
        threads = plan.config.threads or torch.get_num_threads()
        threads = checkpoint.threads if checkpoint else threads
        with orderly(device, threads=threads):
            model = plan.new_model().to(device)
            context = TrainingContext(
                log=log, progress=progress, team=crew, checkpoints=checkpoints, threads=threads
            )
            loop = TrainingLoop(
                model,
                plan.objective(),
                _validation(plan, city, crew),
                config=plan.config,
                seed=seed,
                context=context,
            )
            _log_start(context, model, checkpoint)
            best = loop.run(checkpoint)
    summary = _summary(plan.config, loop.records, best)
    log.event("training finished", **{key: summary[key] for key in ("epochs", "best_epoch")})
    return model.cpu(), summary


def _check_city(city: City) -> None:
    """Refuse a city without two places to choose from, or without two visits of one user."""
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


def _identity(
    plan: TrainingPlan[Any], city: City, part: str, seed: int, device: str, crew: Team
) -> dict[str, Any]:
    """All that the weights depend on, for JSON."""
    return {
        "castpoi": __version__,
        "method": plan.method,
        "fingerprint": city.fingerprint,
        "part": part,
        "seed": seed,
        "device": device,
        "processes": crew.world.ranks,
        "model": plan.model_config,
        "training": plan.config.to_dict(),
    }


def _open(
    options: TrainingOptions, identity: Mapping[str, Any], crew: Team
) -> tuple[Checkpoints | None, Checkpoint | None]:
    """The checkpoint folder, and the checkpoint to resume from."""
    if options.checkpoint_dir is None:
        return None, None
    checkpoints = Checkpoints(folder=options.checkpoint_dir, identity=identity)
    if crew.world.is_first:
        _clear_if_unfit(checkpoints, options)
    crew.wait()  # no process loads before the first has decided what remains
    checkpoint = checkpoints.load()
    crew.wait()
    return checkpoints, checkpoint


def _clear_if_unfit(checkpoints: Checkpoints, options: TrainingOptions) -> None:
    """Remove checkpoints that this training cannot resume from."""
    if not options.resume:
        checkpoints.clear()
        return
    try:
        checkpoints.load()
    except BrokenFolder as problem:
        options.warn(f"{checkpoints.folder} cannot be continued, {problem}; training starts over")
        checkpoints.clear()


def _validation(plan: TrainingPlan[Any], city: City, crew: Team) -> Validate:
    """Metrics on the validation split; each process ranks a share of it."""
    rows = city.targets(record.VALIDATION)
    mine = rows[crew.world.rank :: crew.world.ranks]

    def validate(model: nn.Module) -> Metrics:
        if not len(rows):
            return {}
        ranker = plan.ranker(model)
        ranks = rank_targets(ranker, city.trajectories, mine, method=f"{plan.method} in training")
        return metrics_of(crew.gather(ranks, len(rows)))

    return validate


def _log_start(context: TrainingContext, model: nn.Module, checkpoint: Checkpoint | None) -> None:
    """Log the size of the model, and the epochs of a training that is resumed."""
    context.log.event(
        "training started",
        parameters=sum(weight.numel() for weight in model.parameters()),
        processes=context.team.world.ranks,
        threads=context.threads,
    )
    if checkpoint is None:
        return
    for each in checkpoint.records:
        context.log.event("epoch finished", **each.to_dict())
    context.log.event("training resumed", epochs=len(checkpoint.records))


def _summary(
    config: TrainingConfig, records: list[EpochRecord], best: EpochRecord
) -> dict[str, Any]:
    """How the weights were trained, for the config of the run."""
    return {
        "settings": config.to_dict(),
        "epochs": len(records),
        "best_epoch": best.epoch,
        "validation": best.metrics,
        "seconds": round(float(np.sum([each.seconds for each in records])), 3),
    }
