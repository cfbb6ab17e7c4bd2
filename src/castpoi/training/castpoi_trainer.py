"""From a city to a trained CaST-POI: configs, objective, loop, ranker."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import torch

from castpoi import __version__
from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.errors import BadInput, BrokenFolder, TooFewCheckins
from castpoi.evaluation.metrics import Metrics, metrics_of
from castpoi.evaluation.ranking import rank_targets
from castpoi.model.batch import BatchBuilder
from castpoi.model.castpoi import CastPoi, new_model
from castpoi.model.config import ModelConfig
from castpoi.model.ranker import CastPoiRanker
from castpoi.progress import Progress
from castpoi.training.checkpoint import Checkpoint, Workshop
from castpoi.training.config import TrainingConfig
from castpoi.training.device import device_named, orderly
from castpoi.training.distributed import Team, team
from castpoi.training.fast_objective import FastConfig, FastObjective
from castpoi.training.full_objective import FullObjective, rows_with_history, train_trajectories
from castpoi.training.fused_loss import LossConstants
from castpoi.training.loop import Surroundings, TrainingLoop, Validate
from castpoi.training.memory import candidates_at_once, free_bytes
from castpoi.training.objective import Objective
from castpoi.training.selection import EpochRecord, ShortlistRanker
from castpoi.training.settings import configs_of
from castpoi.training.trainer import Log, TrainingOptions

_THREADS: Final = "threads"
_AT_ONCE: Final = "candidates_at_once"


def train_castpoi(
    city: City,
    *,
    part: str,
    seed: int,
    log: Log,
    progress: Progress,
    options: TrainingOptions,
) -> CastPoiRanker:
    """Learn from the train part, keep the epoch that is best on validation."""
    model_config, config = configs_of(options.preset, options.settings)
    _check(city, model_config, config)
    device = device_named(options.device)
    lat, lon = (city.places[name].to_numpy() for name in (record.LAT, record.LON))
    builder = BatchBuilder(config=model_config, lat=lat, lon=lon)
    with team(device) as crew:
        identity = _identity(city, part, seed, model_config, config, options.device, crew)
        workshop, checkpoint = _open(options, identity, crew)
        frame = dict(checkpoint.frame) if checkpoint else _frame(model_config, config)
        with orderly(device, threads=frame[_THREADS]):
            model = new_model(config=model_config, lat=lat, lon=lon, seed=seed).to(device)
            loop = TrainingLoop(
                model,
                objective_of(
                    city, model_config, config, seed=seed, candidates_at_once=frame[_AT_ONCE]
                ),
                _validation(city, builder, crew),
                config=config,
                seed=seed,
                around=Surroundings(
                    log=log, progress=progress, team=crew, workshop=workshop, frame=frame
                ),
            )
            _tell_beginning(log, model, frame, crew, checkpoint)
            best = loop.run(checkpoint)
    training = _summary(config, loop.records, best)
    log.event("training finished", **{key: training[key] for key in ("epochs", "best_epoch")})
    return CastPoiRanker(model.cpu(), builder, training=training)


def _check(city: City, model: ModelConfig, config: TrainingConfig) -> None:
    if not len(rows_with_history(train_trajectories(city))):
        raise TooFewCheckins(
            "no user has two check-ins in the train part, so there is nothing to learn from; "
            "prepare the city again from more check-ins"
        )
    if config.objective == "fast" and model.positions != "relative" and model.backbone:
        raise BadInput(
            f"objective=fast cannot train positions={model.positions}, which give every prefix "
            "states of its own; choose positions=relative or objective=full"
        )


def _identity(
    city: City,
    part: str,
    seed: int,
    model: ModelConfig,
    config: TrainingConfig,
    device: str,
    crew: Team,
) -> dict[str, Any]:
    """What makes two trainings the same, in JSON's words."""
    return {
        "castpoi": __version__,
        "method": "castpoi",
        "fingerprint": city.fingerprint,
        "part": part,
        "seed": seed,
        "device": device,
        "processes": crew.world.ranks,
        "model": model.to_dict(),
        "training": config.to_dict(),
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


def _frame(model: ModelConfig, config: TrainingConfig) -> dict[str, int]:
    """What this machine decides: cores, and how many candidates fit its memory."""
    at_once = candidates_at_once(model, histories=config.batch, free=free_bytes())
    return {_THREADS: config.threads or torch.get_num_threads(), _AT_ONCE: at_once}


def objective_of(
    city: City,
    model: ModelConfig,
    config: TrainingConfig,
    *,
    seed: int,
    candidates_at_once: int = 32,
) -> Objective[Any]:
    """The objective that a config asks for."""
    if config.objective == "full":
        return FullObjective(
            city, model=model, config=config, seed=seed, candidates_at_once=candidates_at_once
        )
    rivals = max(1, city.places.height - 1)
    return FastObjective(
        city,
        model=model,
        config=FastConfig(
            windows_a_step=config.windows_a_step,
            reader_share=config.reader_share,
            hard_candidates=min(config.hard_candidates, rivals),
            even_candidates=config.even_candidates,
            explore_weight=config.explore_weight,
        ),
        constants=LossConstants(
            label_smoothing=config.label_smoothing,
            margin=config.margin,
            margin_weight=config.margin_weight,
            hard_negatives=min(config.hard_negatives, rivals),
        ),
        seed=seed,
    )


def _validation(city: City, builder: BatchBuilder, crew: Team) -> Validate:
    """Ranks the validation part, each process its share."""
    rows = city.targets(record.VALIDATION)
    mine = rows[crew.world.rank :: crew.world.ranks]

    def validate(model: CastPoi) -> Metrics:
        if not len(rows):
            return {}
        ranker = ShortlistRanker(model, builder)
        ranks = rank_targets(ranker, city.trajectories, mine, method="castpoi in training")
        return metrics_of(crew.gather(ranks, len(rows)))

    return validate


def _tell_beginning(
    log: Log, model: CastPoi, frame: Mapping[str, int], crew: Team, checkpoint: Checkpoint | None
) -> None:
    """Note the size of the work, and the epochs of a training that is resumed."""
    parameters = sum(weight.numel() for weight in model.parameters())
    log.event("training started", parameters=parameters, processes=crew.world.ranks, **frame)
    if checkpoint is None:
        return
    for each in checkpoint.records:
        log.event("epoch finished", **each.to_dict())
    log.event("training resumed", epochs=len(checkpoint.records))


def _summary(
    config: TrainingConfig, records: list[EpochRecord], best: EpochRecord
) -> dict[str, Any]:
    """How the weights came about, for the record of the run."""
    return {
        "settings": config.to_dict(),
        "epochs": len(records),
        "best_epoch": best.epoch,
        "validation": best.metrics,
        "seconds": round(float(np.sum([each.seconds for each in records])), 3),
    }
