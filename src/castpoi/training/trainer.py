"""Runs a training plan: resume, train, validate, summarise; the same for all learned methods.

A method adds only a `TrainingPlan`.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Generic, TypeVar

import torch
from torch import nn

from castpoi import __version__
from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.core.errors import BrokenFolder, TooFewCheckins
from castpoi.evaluation.metrics import Metrics, metrics_of
from castpoi.evaluation.ranking import rank_targets
from castpoi.methods.ranker import Ranker
from castpoi.training.checkpoint import Checkpoint, Checkpoints
from castpoi.training.config import TrainingConfig
from castpoi.training.device import deterministic, device_named
from castpoi.training.distributed import ProcessGroup, process_group
from castpoi.training.job import TrainingJob
from castpoi.training.loop import TrainingContext, TrainingLoop, Validate
from castpoi.training.objectives import Objective

Model = TypeVar("Model", bound=nn.Module)

MAX_SCORES: Final = 10**9
"""Maximum number of scores that a validation computes: targets times places."""


@dataclass(frozen=True, kw_only=True)
class TrainingPlan(Generic[Model]):
    """All that a learned method adds to a training."""

    model_config: Mapping[str, Any]  # for JSON
    config: TrainingConfig
    step_parts: int = 1  # of which one core each computes the gradients on a CPU
    new_model: Callable[[], Model]  # untrained
    objective: Callable[[], Objective[Any]]
    ranker: Callable[[Model], Ranker[Any]]  # ranks the validation split


def run_plan(
    plan: TrainingPlan[Model], city: City, job: TrainingJob
) -> tuple[Model, dict[str, Any]]:
    """The model with the weights of its best epoch, on the CPU, and a summary of its training."""
    check_city(city)
    config, device = plan.config, device_named(job.options.device)
    with process_group(device) as group:
        checkpoints = _checkpoints(plan, city, job, group)
        checkpoint = _load_checkpoint(checkpoints, job, group) if checkpoints else None
        threads = checkpoint.threads if checkpoint else config.threads or torch.get_num_threads()
        parts = plan.step_parts if device.type == "cpu" else 1
        with deterministic(device, threads=threads if parts == 1 else 1):
            model = plan.new_model().to(device)
            context = TrainingContext(
                log=job.log,
                progress=job.progress,
                group=group,
                checkpoints=checkpoints,
                threads=threads,
                step_parts=parts,
            )
            validate = _validation(plan, city, job.method, group)
            loop = TrainingLoop(
                model, plan.objective(), validate, config=config, seed=job.seed, context=context
            )
            _log_start(context, model, checkpoint)
            best = loop.run(checkpoint)
    epochs = {"epochs": len(loop.records), "best_epoch": best.epoch}
    job.log.event("training finished", **epochs)
    seconds = sum(each.seconds for each in loop.records)
    return model.cpu(), {
        "settings": config.to_dict(),
        **epochs,
        "validation": best.metrics,
        "seconds": round(seconds, 3),
    }


def check_city(city: City) -> None:
    """Refuse a city without two places to choose from, or without two visits of one user."""
    if city.places.height == 1:
        raise TooFewCheckins(
            "the city has a single place, so there is nothing to choose from; prepare the city "
            "again from more places"
        )
    if not len(city.train.rows_with_history):
        raise TooFewCheckins(
            "no user has two check-ins in the train split, so there is nothing to learn from; "
            "prepare the city again from more check-ins"
        )


def _checkpoints(
    plan: TrainingPlan[Any], city: City, job: TrainingJob, group: ProcessGroup
) -> Checkpoints | None:
    """The checkpoints of this training, marked with all that its weights depend on."""
    if job.options.checkpoint_dir is None:
        return None
    identity = {
        "castpoi": __version__,
        "method": job.method,
        "fingerprint": city.fingerprint,
        "part": job.part,
        "seed": job.seed,
        "device": job.options.device,
        "processes": group.world.ranks,
        "model": plan.model_config,
        "training": plan.config.to_dict(),
        "from": job.options.start and job.options.start.model_sha256,
    }
    return Checkpoints(folder=job.options.checkpoint_dir, identity=identity)


def _load_checkpoint(
    checkpoints: Checkpoints, job: TrainingJob, group: ProcessGroup
) -> Checkpoint | None:
    """The checkpoint to resume from; the first process removes those of another training."""
    checkpoint = None
    if group.world.is_first:
        try:
            checkpoint = checkpoints.load() if job.options.resume else None
        except BrokenFolder as problem:
            job.options.warn(
                f"{checkpoints.folder} cannot be continued, {problem}; training starts over"
            )
        if checkpoint is None:
            checkpoints.clear()
    group.wait()  # no other process loads before the first has removed what does not fit
    if not group.world.is_first:
        checkpoint = checkpoints.load()
    group.wait()  # the first process writes no new checkpoint before all have loaded
    return checkpoint


def _validation(plan: TrainingPlan[Any], city: City, method: str, group: ProcessGroup) -> Validate:
    """Metrics on the validation split; each process ranks a share of it.

    With very many places, some of the targets, evenly spread, are ranked.
    """
    rows = city.targets(record.VALIDATION)
    most = max(1, MAX_SCORES // city.places.height)
    rows = rows[:: -(-len(rows) // most)] if len(rows) > most else rows
    own = rows[group.world.rank :: group.world.ranks]

    def validate(model: nn.Module) -> Metrics:
        if not len(rows):
            return {}
        ranker = plan.ranker(model)
        ranks = rank_targets(ranker, city.trajectories, own, method=f"{method} in training")
        return metrics_of(group.gather(ranks, len(rows)))

    return validate


def _log_start(context: TrainingContext, model: nn.Module, checkpoint: Checkpoint | None) -> None:
    """Log the size of the model, and the epochs of a training that is resumed."""
    context.log.event(
        "training started",
        parameters=sum(weight.numel() for weight in model.parameters()),
        processes=context.group.world.ranks,
        threads=context.threads,
    )
    if checkpoint is not None:
        for each in checkpoint.records:
            context.log.event("epoch finished", **asdict(each))
        context.log.event("training resumed", epochs=len(checkpoint.records))
