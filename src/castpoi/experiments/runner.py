"""Runs what a plan lacks: several experiments side by side, and on when one of them fails."""

import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from castpoi.core.errors import CastPoiError
from castpoi.core.files import writing
from castpoi.core.progress import Progress, Task
from castpoi.core.quantities import duration_words
from castpoi.core.staging import alone_in
from castpoi.experiments.estimate import Estimator, Former, remaining
from castpoi.experiments.experiment import RUNS, Experiment
from castpoi.experiments.folder import SuiteFolder
from castpoi.experiments.job import Job
from castpoi.experiments.plan import Planned
from castpoi.experiments.record import Record

_LOOK_EVERY_SECONDS: Final = 0.1


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How many experiments run side by side, and on how many cores."""

    jobs: int = 1
    threads: int
    """Cores for all of them together."""
    keep_runs: bool = False
    any_code: bool = False

    @property
    def threads_a_job(self) -> int:
        """Cores of one experiment."""
        return max(1, self.threads // self.jobs)


@dataclass(frozen=True)
class Failure:
    """An experiment that failed, and why."""

    experiment: Experiment
    problem: str


def cores() -> int:
    """The cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_plan(
    plan: Sequence[Planned],
    folder: SuiteFolder,
    *,
    record: Callable[[], Record],
    pace: Pace,
    progress: Progress,
    say: Callable[[str], None],
    name: str,
) -> list[Failure]:
    """Run all of a plan that is not there; the failures, in the order they came.

    The record is opened when nobody else can write to it; `name` is that of the progress bar.
    """
    with ExitStack() as held:
        with writing(folder.root):
            folder.root.mkdir(parents=True, exist_ok=True)
            (folder.root / RUNS).mkdir(exist_ok=True)
            lock = held.enter_context(alone_in(folder.root, lock=f"{RUNS}/.lock"))
        for each in plan:
            if each.is_there:
                folder.remove_finished_run(each.experiment)
        task = held.enter_context(progress.task(name, total=len(plan)))
        runner = _Runner(plan, folder, record=record(), pace=pace, lock=lock, task=task, say=say)
        try:
            runner.run()
        finally:
            runner.stop()
        return runner.failures


class _Runner:
    """The experiments that wait, that are under way, and that have failed."""

    def __init__(
        self,
        plan: Sequence[Planned],
        folder: SuiteFolder,
        *,
        record: Record,
        pace: Pace,
        lock: int,
        task: Task,
        say: Callable[[str], None],
    ) -> None:
        self.failures: list[Failure] = []
        self._waiting = [each.experiment for each in plan if not each.is_there]
        self._under_way: list[Job] = []
        self._all, self._over = len(plan), len(plan) - len(self._waiting)
        self._folder, self._pace, self._lock = folder, pace, lock
        self._task, self._say = task, say
        self._record = record
        formers = map(Former.of, folder.proofs())
        self._estimator = Estimator(formers, threads=pace.threads_a_job)
        task.advance(self._over)

    def run(self) -> None:
        """Start, watch and close experiments until none is left."""
        while self._waiting or self._under_way:
            while self._waiting and len(self._under_way) < self._pace.jobs:
                self._start(self._waiting.pop(0))
            time.sleep(_LOOK_EVERY_SECONDS)
            for job in [job for job in self._under_way if job.is_over()]:
                self._under_way.remove(job)
                self._end(job)
            self._task.describe(self._words())

    def stop(self) -> None:
        """End what is under way; the next command goes on from there."""
        for job in self._under_way:
            job.stop()
            self._record.note(job.experiment, "waiting", "interrupted")

    def _start(self, experiment: Experiment) -> None:
        try:
            job = Job(
                experiment,
                self._folder,
                threads=self._pace.threads_a_job,
                lock=self._lock,
                any_code=self._pace.any_code,
            )
        except (CastPoiError, OSError) as problem:
            self._fail(experiment, str(problem))
            return
        self._under_way.append(job)
        self._record.note(experiment, "under way")
        self._say(f"{experiment.name} has begun")

    def _end(self, job: Job) -> None:
        if job.problem:
            self._fail(job.experiment, job.problem)
            return
        try:
            proof = job.close(keep_run=self._pace.keep_runs)
        except (CastPoiError, OSError) as problem:
            self._fail(job.experiment, str(problem))
            return
        self._count()
        self._estimator.learn(Former.of(proof))
        self._record.note_done(job.experiment, proof)
        took = duration_words(proof["seconds"])
        self._say(f"{job.experiment.name} is done ({took}); {self._words()}")

    def _fail(self, experiment: Experiment, problem: str) -> None:
        self._count()
        self.failures.append(Failure(experiment, problem))
        self._record.note(experiment, "failed", problem)
        self._say(f"{experiment.name} FAILED: {problem}; {self._words()}")

    def _count(self) -> None:
        self._over += 1
        self._task.advance()

    def _words(self) -> str:
        """What is done, what is under way, and how long it may still take."""
        left = remaining(
            [self._estimator.estimate(each) for each in self._waiting],
            [(self._estimator.estimate(job.experiment), job.seconds) for job in self._under_way],
            jobs=self._pace.jobs,
        )
        words = [f"{self._over} of {self._all}"]
        if self.failures:
            words.append(f"{len(self.failures)} failed")
        if self._waiting or self._under_way:
            words.append(f"{left.words} left")
        return ", ".join(words)
