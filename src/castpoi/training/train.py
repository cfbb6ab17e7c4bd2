"""Training: from a city and the name of a method to a ranker (`fit`) or a saved run (`train`).

A learned method keeps its checkpoints in RUN.training, next to the future run, until the run is
complete; the same command resumes from there (see `checkpoint.py`). Where several processes train
together, only the first one writes.
"""

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from castpoi.baselines.counting import parts_before
from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.core.errors import BadInput
from castpoi.core.files import check_vacant, is_folder_of, new_folder, write_json, writing
from castpoi.core.progress import SILENCE, Progress
from castpoi.core.provenance import Stopwatch, commit
from castpoi.core.staging import LOCK, alone_in, remove, sweep
from castpoi.methods.ranker import SavableRanker
from castpoi.methods.registry import METHODS, Method
from castpoi.methods.run import LOG, Run, RunLog, load_run, places_of, write_run
from castpoi.training.config import TrainingConfig
from castpoi.training.log import Log, NoLog, TensorBoardLog
from castpoi.training.world import World

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_REMOVABLE: Final = {LOG, LOCK, "manifest.json"}  # in a checkpoint folder without a checkpoint


def ignore(sentence: str) -> None:
    """Ignore a warning."""


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """How to train a learned method."""

    method: str = "castpoi"
    """Name of the method; set by `fit`."""
    preset: str | None = None
    """Settings to start from, by name.  [default: the method's first preset]"""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Changes to the preset, by name, as text."""
    device: Literal["cpu", "cuda", "mps"] = "cpu"
    """Where to train."""
    checkpoint_dir: Path | None = None
    """Folder for checkpoints; None for no checkpoints."""
    resume: bool = True
    """Resume the same training if it was interrupted."""
    warn: Callable[[str], None] = ignore
    """Receives warnings for the user."""

    @property
    def given(self) -> list[str]:
        """The options that were set, in words of the command line."""
        named = [("--preset", self.preset is not None), ("--device", self.device != "cpu")]
        return [name for name, is_set in named if is_set] + list(self.settings)


class Trainer(Protocol):
    """The function that trains a learned method; named in `Method.trainer`."""

    def __call__(
        self,
        city: City,
        *,
        part: str,
        seed: int,
        log: Log,
        progress: Progress,
        options: TrainingOptions,
    ) -> SavableRanker[Any]:
        """Learn from the train split to predict `part`; one seed gives one ranker."""


def configs_for(
    method: Method, preset: str, settings: Mapping[str, str]
) -> tuple["DataclassInstance", TrainingConfig]:
    """The configs of the model and of the training of a learned method.

    Raises:
        BadInput: a setting is unknown, cannot be read or contradicts another; or the method belongs
            to another package, which alone can check its settings.
    """
    if not method.is_ours:
        raise BadInput(
            f"{method.name} is of another package, and only that knows its settings; castpoi "
            "cannot try them, but 'castpoi reproduce' takes a suite with a row for each value"
        )
    trainer = import_module((method.trainer or "").partition(":")[0])
    return trainer.configs(method.name, preset, {**settings, **method.settings})


def fit(
    method: Method,
    city: City,
    *,
    part: str = record.TEST,
    seed: int = 0,
    log: Log | None = None,
    progress: Progress | None = None,
    options: TrainingOptions | None = None,
) -> SavableRanker[Any]:
    """Train a method in memory, from the splits before `part`."""
    log, options = log or NoLog(), options or TrainingOptions()
    if not method.needs_training:
        ranker = method.count(city, part=part)
        log.event("city counted", places=ranker.places)
        return ranker
    trainer: Trainer = method.trainer_function()
    return trainer(
        city,
        part=part,
        seed=seed,
        log=log,
        progress=progress or SILENCE,
        options=replace(
            options,
            method=method.name,
            preset=options.preset or method.default_preset,
            settings={**options.settings, **method.settings},
        ),
    )


def train(
    city_folder: Path,
    out: Path,
    *,
    method: str,
    seed: int = 0,
    part: str = record.TEST,
    overwrite: bool = False,
    progress: Progress | None = None,
    options: TrainingOptions | None = None,
    tensorboard: Path | None = None,
) -> Run:
    """Train a method on a city and save the run; its folder appears complete or not at all."""
    chosen, options = METHODS.named(method), options or TrainingOptions()
    knows = known_parts(chosen, part)
    _check_options(chosen, options)
    world = World.from_environment()
    if world.is_first:
        _remove_finished(out)
        check_vacant(out, kind="run", overwrite=overwrite)
    work, city = Stopwatch(), City.load(city_folder)
    with _checkpoint_dir(out, world) if chosen.needs_training else nullcontext() as folder:
        log = RunLog(folder / LOG if folder and world.is_first else None)
        log.event(
            "run started",
            method=method,
            seed=seed,
            commit=commit(),
            fingerprint=city.fingerprint,
        )
        ranker = fit(
            chosen,
            city,
            part=part,
            seed=seed,
            log=_with_curves(log, tensorboard if world.is_first else None),
            progress=progress,
            options=replace(options, checkpoint_dir=folder),
        )
        work = work.plus(seconds_before(log.lines))
        log.event("run finished", seconds=round(work.seconds, 3))
        with _run_folder(out, world) as target:
            with new_folder(target, kind="run", overwrite=overwrite) as staging:
                log.save(staging / LOG)
                write_run(
                    staging,
                    ranker,
                    method=method,
                    preset=options.preset or chosen.default_preset,
                    settings=changed_settings(chosen, options),
                    seed=seed,
                    part=part,
                    knows=knows,
                    city=city_folder,
                    fingerprint=city.fingerprint,
                    places=places_of(city, knows),
                    work=work,
                )
            return replace(load_run(target), folder=out)


def changed_settings(method: Method, options: TrainingOptions) -> dict[str, str]:
    """The settings of a training that differ from its preset and that can change its numbers."""
    preset = options.preset or method.default_preset
    if preset is None or not method.is_ours:
        return dict(options.settings)
    before = [vars(each) for each in configs_for(method, preset, {})]
    after = [vars(each) for each in configs_for(method, preset, options.settings)]
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for old, new in zip(before, after, strict=True)
        for name, value in new.items()
        if value != old[name] and name != "threads"
    }


def known_parts(method: Method, part: str) -> tuple[str, ...]:
    """The splits a ranker has seen: a learned one is fitted to train, the rest only selects it."""
    counted = parts_before(part)
    return (record.TRAIN,) if method.needs_training else counted


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


def _check_options(method: Method, options: TrainingOptions) -> None:
    if options.given and not method.needs_training:
        raise BadInput(
            f"{method.name} is counted, not learned, so it has nothing to set; "
            f"leave out {', '.join(options.given)}"
        )
    if method.presets and options.preset not in (None, *method.presets):
        raise BadInput(
            f"{method.name} has no preset {options.preset!r}; choose {' or '.join(method.presets)}"
        )
    method.check_free(options.settings)


def _with_curves(log: RunLog, tensorboard: Path | None) -> Log:
    return log if tensorboard is None else TensorBoardLog(log, tensorboard)


def _remove_finished(out: Path) -> None:
    """Remove the checkpoints of a run that is complete: its command was killed before it did so.

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


@contextmanager
def _run_folder(out: Path, world: World) -> Iterator[Path]:
    """Where this process writes the run: all but the first write a temporary one."""
    if world.is_first:
        yield out
        return
    with tempfile.TemporaryDirectory(prefix="castpoi-") as folder:
        yield Path(folder) / out.name
