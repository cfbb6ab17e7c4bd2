"""Training: from a city and the name of a method to a run."""

from pathlib import Path
from typing import Any, Protocol

from castpoi.baselines.known import parts_before
from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.files import new_folder
from castpoi.methods import METHODS, Method
from castpoi.progress import Progress, Silence
from castpoi.provenance import Stopwatch, commit
from castpoi.ranker import SavableRanker
from castpoi.run import LOG, Run, RunLog, load_run, write_run


class Log(Protocol):
    """Someone who notes the events of a training."""

    def event(self, event: str, **fields: object) -> None:
        """Note what has just happened."""


class Trainer(Protocol):
    """How a learned method is trained; named in `methods.Method.trainer`."""

    def __call__(
        self, city: City, *, part: str, seed: int, log: Log, progress: Progress
    ) -> SavableRanker[Any]:
        """Learn from the train part so as to foretell `part`; one seed gives one ranker."""


class NoLog:
    """A log that nobody keeps."""

    def event(self, event: str, **fields: object) -> None:
        """Forget what has just happened."""


def train(
    city_folder: Path,
    out: Path,
    *,
    method: str,
    seed: int = 0,
    part: str = record.TEST,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Run:
    """Fit a method on a city and write a run, which appears whole or not at all."""
    chosen = METHODS.named(method)
    knows = known_parts(chosen, part)
    with new_folder(out, kind="run", overwrite=overwrite) as staging:
        work = Stopwatch()
        city = City.load(city_folder)
        log = RunLog(staging / LOG)
        log.event(
            "run started", method=method, seed=seed, commit=commit(), fingerprint=city.fingerprint
        )
        ranker = fit(chosen, city, part=part, seed=seed, log=log, progress=progress)
        log.event("run finished", seconds=round(work.seconds, 3))
        write_run(
            staging,
            ranker,
            method=method,
            seed=seed,
            part=part,
            knows=knows,
            city=city_folder,
            fingerprint=city.fingerprint,
            work=work,
        )
    return load_run(out)


def fit(
    method: Method,
    city: City,
    *,
    part: str = record.TEST,
    seed: int = 0,
    log: Log | None = None,
    progress: Progress | None = None,
) -> SavableRanker[Any]:
    """A ranker made from what may be known before `part` is foretold."""
    log = log or NoLog()
    if method.needs_training:
        trainer: Trainer = method.trainer_function()
        return trainer(city, part=part, seed=seed, log=log, progress=progress or Silence())
    ranker = method.count(city, part=part)
    log.event("city counted", places=ranker.places)
    return ranker


def known_parts(method: Method, part: str) -> tuple[str, ...]:
    """The parts a ranker has seen: a learned one is fitted to train and only chosen by the rest."""
    counted = parts_before(part)
    return (record.TRAIN,) if method.needs_training else counted
