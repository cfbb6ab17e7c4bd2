"""Training: from a city and the name of a method to a run.

A learned method keeps its checkpoints in RUN.training, beside the run to be, until the run is
whole; the same command continues from there (see `checkpoint.py`). Where several processes train
together, the first one writes and the others only lend a hand.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from castpoi.baselines.known import parts_before
from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.errors import BadInput
from castpoi.files import check_vacant, new_folder, write_json
from castpoi.methods import METHODS, Method
from castpoi.progress import Progress, Silence
from castpoi.provenance import Stopwatch, commit
from castpoi.ranker import SavableRanker
from castpoi.run import LOG, Run, RunLog, load_run, places_of, write_run
from castpoi.training.tensorboard import TensorBoardLog
from castpoi.training.trainer import Log, NoLog, Trainer, TrainingOptions
from castpoi.training.world import World

_KEPT_ANYWAY = {LOG, "manifest.json"}  # what a workshop holds before its first checkpoint


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
        check_vacant(out, kind="run", overwrite=overwrite)
    work = Stopwatch()
    city = City.load(city_folder)
    with _workshop(out, world) if chosen.needs_training else nullcontext() as workshop:
        log = RunLog(workshop / LOG if workshop and world.is_first else None)
        log.event(
            "run started", method=method, seed=seed, commit=commit(), fingerprint=city.fingerprint
        )
        made_with = replace(options, workshop=workshop)
        curves: Log = log
        if tensorboard is not None and world.is_first:
            curves = TensorBoardLog(log, tensorboard)
        ranker = fit(
            chosen, city, part=part, seed=seed, log=curves, progress=progress, options=made_with
        )
        log.event("run finished", seconds=round(work.seconds, 3))
        with _place_for(out, world) as place:
            with new_folder(place, kind="run", overwrite=overwrite) as staging:
                log.save(staging / LOG)
                write_run(
                    staging,
                    ranker,
                    method=method,
                    seed=seed,
                    part=part,
                    knows=knows,
                    city=city_folder,
                    fingerprint=city.fingerprint,
                    places=places_of(city, knows),
                    work=work,
                )
            return replace(load_run(place), folder=out)


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


def known_parts(method: Method, part: str) -> tuple[str, ...]:
    """The parts a ranker has seen: a learned one is fitted to train and only chosen by the rest."""
    counted = parts_before(part)
    return (record.TRAIN,) if method.needs_training else counted


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
    fixed = sorted(method.settings.keys() & options.settings.keys())
    if fixed:
        raise BadInput(
            f"{method.name} is defined by {fixed[0]}={method.settings[fixed[0]]}, which cannot be "
            f"changed; leave out {fixed[0]}, or train castpoi with it"
        )


@contextmanager
def _workshop(out: Path, world: World) -> Iterator[Path]:
    """The workshop of a run; it goes when the run is whole, or if it holds no checkpoint."""
    folder = workshop_of(out)
    if not world.is_first:
        yield folder
        return
    check_vacant(folder, kind="training", overwrite=True)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise BadInput(
            f"{folder} cannot be written: {problem.strerror}; choose another --out"
        ) from problem
    write_json(folder / "manifest.json", {"kind": "training", "run": out.name})
    try:
        yield folder
    except BaseException:
        if {each.name for each in folder.iterdir()} <= _KEPT_ANYWAY:
            shutil.rmtree(folder)
        raise
    shutil.rmtree(folder)


@contextmanager
def _place_for(out: Path, world: World) -> Iterator[Path]:
    """Where this process writes the run: only the first leaves it there."""
    if world.is_first:
        yield out
        return
    with tempfile.TemporaryDirectory(prefix="castpoi-") as folder:
        yield Path(folder) / out.name
