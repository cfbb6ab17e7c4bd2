"""Training: `fit` trains on a city in memory; `train` trains on a city's folder and saves the run.

A learned method keeps its checkpoints in RUN.training, next to the future run, until the run is
complete; the same command resumes from there (see `checkpoint.py`). Where several processes train
together, only the first one writes.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from castpoi.baselines.counting import parts_before
from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.core.config import differences, text_of
from castpoi.core.errors import BadInput
from castpoi.core.files import check_vacant, is_folder_of, new_folder, write_json, writing
from castpoi.core.progress import SILENCE, Progress
from castpoi.core.provenance import Stopwatch, commit
from castpoi.core.staging import LOCK, alone_in, remove, sweep
from castpoi.methods.ranker import SavableRanker
from castpoi.methods.registry import METHODS, Method
from castpoi.methods.run import KNOWN_CHECKINS, LOG, Run, RunLog, load_run, new_run, places_of
from castpoi.training.job import Trainer, TrainingJob, TrainingOptions, World

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


_REMOVABLE: Final = {LOG, LOCK, "manifest.json"}  # in a checkpoint folder without a checkpoint

UPDATE: Final = {
    "epochs": "1", "warmup_epochs": "0.1", "learning_rate": "3e-4", "learn_from": "new",
}  # fmt: skip
"""Settings of a training that continues from a run, unless others are given."""


def fit(
    city: City,
    method: Method,
    *,
    part: str | None = record.TEST,
    seed: int = 0,
    progress: Progress = SILENCE,
    options: TrainingOptions | None = None,
) -> Run:
    """Train or count a method to predict `part`.

    A learned method learns from `city.train`; validation selects its epoch. A counting baseline
    counts all splits before `part`. If `part` is None, both learn from all check-ins, and the last
    epoch is kept.

    Raises:
        BadInput: an option does not fit the method.
    """
    options = options or TrainingOptions()
    _check(method, part, options)
    if options.start is not None:
        options = _continued(method, options, options.start)
    log, work = _log_of(options), Stopwatch()
    origin: dict[str, Any] = {"method": method.name, "seed": seed, "fingerprint": city.fingerprint}
    places = places_of(city, knows := known_parts(method, part))
    checkins = int(places[KNOWN_CHECKINS].sum())
    log.event("run started", commit=commit(), **origin, holdout=part, checkins=checkins)
    preset, settings = options.preset or method.default_preset, options.settings
    complete = replace(options, preset=preset, settings={**settings, **method.settings})
    job = TrainingJob(
        method=method.name, part=part, seed=seed, log=log, progress=progress, options=complete
    )
    seen = city if part else _without_holdout(city)
    ranker = _ranker_of(seen, method, job)
    work = work.plus(seconds_before(log.lines))
    log.event("run finished", seconds=round(work.seconds, 3))
    return new_run(
        ranker,
        **origin,
        preset=preset,
        settings=changed_settings(method, preset, settings),
        part=part,
        knows=knows,
        city=city.folder,
        places=places,
        work=work,
        log="".join(log.lines),
        learned_until_us=int(seen.train.at_us.max(initial=0)),
        start=options.start,
    )


def train(
    city_folder: Path,
    out: Path,
    *,
    method: str,
    seed: int = 0,
    part: str | None = record.TEST,
    overwrite: bool = False,
    progress: Progress = SILENCE,
    options: TrainingOptions | None = None,
) -> Run:
    """Train or count a method and save the run; its folder appears complete or not at all."""
    chosen, world = METHODS.named(method), World.from_environment()
    options = options or TrainingOptions()
    _check(chosen, part, options)
    if world.is_first:
        _remove_finished(out)
        check_vacant(out, kind="run", overwrite=overwrite)
    city = City.load(city_folder)
    with _checkpoint_dir(out, world) if chosen.needs_training else nullcontext() as folder:
        options = replace(options, checkpoint_dir=folder)
        run = fit(city, chosen, part=part, seed=seed, progress=progress, options=options)
        if not world.is_first:
            return replace(run, folder=out)
        run.save(out, overwrite=overwrite)
        return load_run(out)


def _check(method: Method, part: str | None, options: TrainingOptions) -> None:
    """Refuse a split, a preset or settings that the method does not have."""
    parts_before(part)
    if options.given and not method.needs_training:
        raise BadInput(
            f"{method.name} is a counting baseline, which has no settings; "
            f"leave out {', '.join(options.given)}"
        )
    if method.presets:
        method.check_preset(options.preset)
    method.check_free(options.settings)


def _continued(method: Method, options: TrainingOptions, start: Run) -> TrainingOptions:
    """Options with the settings of the run from which to continue; refuses other settings."""
    if start.method != method.name:
        raise BadInput(
            f"{start.name} is a run of {start.method}, not of {method.name}; give --model "
            f"{start.method}, or train without --from"
        )
    if not method.can_continue:
        raise BadInput(
            f"{method.name} cannot continue from a run; leave out --from, and it is trained from "
            "the start"
        )
    preset, settings = start.row["preset"], {**start.row["settings"], **UPDATE, **options.settings}
    model, _ = configs_for(method, preset, settings)
    other = differences(vars(model), start.ranker.config["model"])
    if other or options.preset not in (None, preset):
        raise BadInput(
            f"{start.name} was trained with other settings of the model than those given "
            f"({other or f'preset {options.preset}, not {preset}'}); leave these out: the "
            "settings of the run are used"
        )
    return replace(options, preset=preset, settings=settings)


def _ranker_of(city: City, method: Method, job: TrainingJob) -> SavableRanker[Any]:
    if method.needs_training:
        trainer: Trainer = method.trainer_function()
        return trainer(city, job)
    ranker = method.count(city, part=job.part or record.TEST)
    job.log.event("city counted", places=ranker.places)
    return ranker


def _without_holdout(city: City) -> City:
    """The city with its validation and test splits in train; left-out check-ins stay left out."""
    part = pl.col(record.PART)
    all_train = pl.when(part == record.LEFT_OUT).then(part).otherwise(pl.lit(record.TRAIN))
    split = city.split.with_columns(all_train.alias(record.PART)).cast(record.SPLIT_SCHEMA)
    return replace(city, split=split)


def best_epoch(folder: Path, method: Method) -> str:
    """The best epoch of a run of this method, as the setting `epochs` of another training."""
    run = load_run(folder)
    epoch = run.ranker.config.get("training", {}).get("best_epoch")
    if run.method != method.name or epoch is None:
        raise BadInput(
            f"{folder} is a run of {run.method}, which does not show how many epochs {method.name} "
            f"needs; give the epochs of a trained run of {method.name}, or a number of epochs"
        )
    return str(epoch)


def configs_for(
    method: Method, preset: str, settings: Mapping[str, str]
) -> tuple["DataclassInstance", Any]:
    """The configs of the model and of the training of a learned method.

    Raises:
        BadInput: a setting is unknown, cannot be read or contradicts another; or the method belongs
            to another package, which alone can check its settings.
    """
    if not method.is_ours:
        raise BadInput(
            f"{method.name} comes from another package, so castpoi cannot check its settings; "
            "instead of 'castpoi tune', give 'castpoi reproduce' a suite with a row for each value"
        )
    trainer = import_module((method.trainer or "").partition(":")[0])
    return trainer.configs(method.name, preset, {**settings, **method.settings})


def settings_of(method: Method) -> set[str]:
    """The names of all settings of a learned method."""
    return {name for each in configs_for(method, method.presets[0], {}) for name in vars(each)}


def changed_settings(
    method: Method, preset: str | None, settings: Mapping[str, str]
) -> dict[str, str]:
    """The settings of a training that differ from its preset and that can change its numbers."""
    if preset is None or not method.is_ours:
        return dict(settings)
    before = [vars(each) for each in configs_for(method, preset, {})]
    after = [vars(each) for each in configs_for(method, preset, settings)]
    return {
        name: text_of(value)
        for old, new in zip(before, after, strict=True)
        for name, value in new.items()
        if value != old[name] and name != "threads"
    }


def known_parts(method: Method, part: str | None) -> tuple[str, ...]:
    """The splits that a ranker learns from; validation only selects the epoch of a learned one."""
    counted = parts_before(part)
    return (record.TRAIN,) if method.needs_training and part else counted


def seconds_before(log: Iterable[str]) -> float:
    """Seconds of the epochs before a training was resumed, from the log of its run.

    Epochs that were cut off, and the start of earlier processes, are not in the log.
    """
    seconds = 0.0
    for event in map(json.loads, log):
        if event["event"] == "training resumed":
            return seconds
        if event["event"] == "epoch finished":
            seconds += float(event.get("seconds", 0.0))
    return 0.0


def checkpoint_dir_of(out: Path) -> Path:
    """The folder of the checkpoints of a run until the run is complete."""
    return out.with_name(f"{out.name}.training")


def _log_of(options: TrainingOptions) -> RunLog:
    """The log of a training; a file and curves only in the first process."""
    if not World.from_environment().is_first:
        return RunLog()
    path = options.checkpoint_dir / LOG if options.checkpoint_dir else None
    return TensorBoardLog(options.tensorboard, path) if options.tensorboard else RunLog(path)


def _remove_finished(out: Path) -> None:
    """Remove the checkpoints of a complete run, whose command was killed before it did so.

    The run and its checkpoints have the same log. Checkpoints of another training stay.
    """
    folder = checkpoint_dir_of(out)
    sweep(folder)
    try:
        is_finished = (folder / LOG).read_bytes() == (out / LOG).read_bytes()
    except OSError:  # there are no checkpoints, or no run
        return
    if is_finished and is_folder_of(out, "run") and is_folder_of(folder, "training"):
        with alone_in(folder, patience_seconds=0):
            remove(folder)


@contextmanager
def _checkpoint_dir(out: Path, world: World) -> Iterator[Path]:
    """The checkpoint folder of a run; removed if the run is complete or there is no checkpoint."""
    folder = checkpoint_dir_of(out)
    if not world.is_first:
        yield folder
        return
    check_vacant(folder, kind="training", overwrite=True)
    if not is_folder_of(folder, "training"):
        with new_folder(folder, kind="training") as staging, writing(folder):
            write_json(staging / "manifest.json", {"kind": "training", "run": out.name})
    with alone_in(folder, patience_seconds=0):
        try:
            yield folder
        except BaseException:
            if {each.name for each in folder.iterdir()} <= _REMOVABLE:
                remove(folder)
            raise
        remove(folder)


class TensorBoardLog(RunLog):
    """The log of a run; the numbers of every epoch become points of curves in a folder."""

    def __init__(self, folder: Path, path: Path | None = None) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as missing:
            raise BadInput(
                "TensorBoard is not installed; `pip install 'castpoi[tensorboard]'`, or train "
                "without --tensorboard (log.jsonl holds the same numbers)"
            ) from missing
        super().__init__(path)
        self.writer = SummaryWriter(str(folder))

    def event(self, event: str, **fields: object) -> None:
        """Append an event, and add the numbers of an epoch to the curves."""
        super().event(event, **fields)
        epoch = fields.get("epoch")
        if not isinstance(epoch, int):
            return
        for name, value in _numbers(fields):
            self.writer.add_scalar(name, value, epoch)
        self.writer.flush()


def _numbers(fields: Mapping[str, object], before: str = "") -> Iterator[tuple[str, float]]:
    """The numbers of an event; those of a group are named `group/name`."""
    for name, value in fields.items():
        if isinstance(value, Mapping):
            yield from _numbers(value, f"{before}{name}/")
        elif isinstance(value, int | float) and name != "epoch":
            yield f"{before}{name}", float(value)
