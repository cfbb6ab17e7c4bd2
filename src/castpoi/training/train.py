"""Training: from a city and the name of a method to a run.

A learned method keeps its checkpoints in RUN.training, beside the run to be, until the run is
whole; the same command continues from there (see `checkpoint.py`). Where several processes train
together, the first one writes and the others only lend a hand.
"""

import json
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from castpoi.baselines.known import parts_before
from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.core.checksums import write_manifest
from castpoi.core.errors import BadInput
from castpoi.core.files import check_vacant, is_folder_of, new_folder, write_json, writing
from castpoi.core.progress import Progress, Silence
from castpoi.core.provenance import Stopwatch, commit
from castpoi.core.staging import LOCK, alone_in, remove, sweep
from castpoi.methods.ranker import SavableRanker
from castpoi.methods.registry import METHODS, Method
from castpoi.methods.run import LOG, Run, RunLog, load_run, places_of, write_run
from castpoi.training.tensorboard import TensorBoardLog
from castpoi.training.trainer import Log, NoLog, Trainer, TrainingOptions
from castpoi.training.world import World

_KEPT_ANYWAY = {LOG, LOCK, "manifest.json"}  # what a workshop holds before its first checkpoint


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
    """Fit a method on a city and write a run, which appears whole or not at all."""
    chosen = METHODS.named(method)
    knows = known_parts(chosen, part)
    options = options or TrainingOptions()
    _check_options(chosen, options)
    world = World.from_environment()
    if world.is_first:
        _remove_finished(out)
        check_vacant(out, kind="run", overwrite=overwrite)
    work = Stopwatch()
    city = City.load(city_folder)
    origin = _Origin(chosen, seed, part, knows, city, city_folder, options)
    with _workshop(out, world) if chosen.needs_training else nullcontext() as workshop:
        log = RunLog(workshop / LOG if workshop and world.is_first else None)
        ranker = origin.fitted(
            log, _curves(log, tensorboard, world), progress, replace(options, workshop=workshop)
        )
        before = seconds_before(log.lines)
        log.event("run finished", seconds=round(before + work.seconds, 3))
        with _place_for(out, world) as place:
            with new_folder(place, kind="run", overwrite=overwrite) as staging:
                log.save(staging / LOG)
                origin.write(staging, ranker, work, before)
            return replace(load_run(place), folder=out)


@dataclass(frozen=True)
class _Origin:
    """What a run is made from, and how to make it."""

    method: Method
    seed: int
    part: str
    knows: tuple[str, ...]
    city: City
    city_folder: Path
    options: TrainingOptions

    def fitted(
        self, log: RunLog, curves: Log, progress: Progress | None, options: TrainingOptions
    ) -> SavableRanker[Any]:
        """The ranker of the run; its log begins with where it comes from."""
        log.event(
            "run started",
            method=self.method.name,
            seed=self.seed,
            commit=commit(),
            fingerprint=self.city.fingerprint,
        )
        return fit(
            self.method,
            self.city,
            part=self.part,
            seed=self.seed,
            log=curves,
            progress=progress,
            options=options,
        )

    def write(
        self, folder: Path, ranker: SavableRanker[Any], work: Stopwatch, before: float
    ) -> None:
        """Write all files of the run but its log; `before` it went on, it took so many seconds."""
        manifest = write_run(
            folder,
            ranker,
            method=self.method.name,
            preset=self.options.preset or self.method.default_preset,
            settings=changed_settings(self.method, self.options),
            seed=self.seed,
            part=self.part,
            knows=self.knows,
            city=self.city_folder,
            fingerprint=self.city.fingerprint,
            places=places_of(self.city, self.knows),
            work=work,
        )
        manifest["wall_seconds"] = round(before + manifest["wall_seconds"], 3)
        write_manifest(folder, manifest)


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
    """A ranker made from what may be known before `part` is foretold."""
    log, options = log or NoLog(), options or TrainingOptions()
    if method.needs_training:
        trainer: Trainer = method.trainer_function()
        return trainer(
            city,
            part=part,
            seed=seed,
            log=log,
            progress=progress or Silence(),
            options=replace(
                options,
                method=method.name,
                preset=options.preset or method.default_preset,
                settings={**options.settings, **method.settings},
            ),
        )
    ranker = method.count(city, part=part)
    log.event("city counted", places=ranker.places)
    return ranker


def changed_settings(method: Method, options: TrainingOptions) -> dict[str, str]:
    """The settings of a training that differ from its preset and that can change its numbers."""
    preset = options.preset or method.default_preset
    if preset is None or not method.is_ours:
        return dict(options.settings)
    from castpoi.training.configs import configs_for  # imports torch

    before = [vars(each) for each in configs_for(method, preset, {})]
    after = [vars(each) for each in configs_for(method, preset, options.settings)]
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for old, new in zip(before, after, strict=True)
        for name, value in new.items()
        if value != old[name] and name != "threads"
    }


def known_parts(method: Method, part: str) -> tuple[str, ...]:
    """The parts a ranker has seen: a learned one is fitted to train and only chosen by the rest."""
    counted = parts_before(part)
    return (record.TRAIN,) if method.needs_training else counted


def seconds_before(log: Iterable[str]) -> float:
    """How long the epochs took that a training was resumed after, by the log of its run.

    An epoch that was cut off, and the start of a process that was, are not told and do not count.
    """
    seconds = 0.0
    for event in map(json.loads, log):
        if event["event"] == "training resumed":
            return seconds
        if event["event"] == "epoch finished":
            seconds += float(event.get("seconds", 0.0))
    return 0.0


def workshop_of(out: Path) -> Path:
    """Where the checkpoints of a run rest until it is whole."""
    return out.with_name(f"{out.name}.training")


def _check_options(method: Method, options: TrainingOptions) -> None:
    if options.asked_for and not method.needs_training:
        raise BadInput(
            f"{method.name} is counted, not learned, so it has nothing to set; "
            f"leave out {', '.join(options.asked_for)}"
        )
    if method.presets and options.preset not in (None, *method.presets):
        raise BadInput(
            f"{method.name} has no preset {options.preset!r}; choose {' or '.join(method.presets)}"
        )
    method.check_free(options.settings)


def _curves(log: RunLog, tensorboard: Path | None, world: World) -> Log:
    """Who hears of the training: the log of the run, and TensorBoard where it is asked for."""
    if tensorboard is None or not world.is_first:
        return log
    return TensorBoardLog(log, tensorboard)


def _remove_finished(out: Path) -> None:
    """Remove the checkpoints of a run that is whole: its command was killed before it did so.

    The run and its checkpoints have the same log. Checkpoints of another training stay.
    """
    folder = workshop_of(out)
    sweep(folder)
    try:
        is_finished = (folder / LOG).read_bytes() == (out / LOG).read_bytes()
    except OSError:  # there are no checkpoints, or no run
        return
    if is_finished and is_folder_of(out, "run") and is_folder_of(folder, "training"):
        with alone_in(folder, patience_seconds=0):
            remove(folder)


@contextmanager
def _workshop(out: Path, world: World) -> Iterator[Path]:
    """The checkpoint folder of a run; removed if the run is whole or there is no checkpoint."""
    folder = workshop_of(out)
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
            if {each.name for each in folder.iterdir()} <= _KEPT_ANYWAY:
                remove(folder)
            raise
        remove(folder)


@contextmanager
def _place_for(out: Path, world: World) -> Iterator[Path]:
    """Where this process writes the run: only the first leaves it there."""
    if world.is_first:
        yield out
        return
    with tempfile.TemporaryDirectory(prefix="castpoi-") as folder:
        yield Path(folder) / out.name
