"""Run the missing experiments of a plan, several at a time; a failure does not stop the others."""

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Protocol

from castpoi.checkins import record as columns
from castpoi.core.errors import CastPoiError
from castpoi.core.files import read_or_nothing, write_json, writing
from castpoi.core.progress import Progress, Task
from castpoi.core.provenance import now_utc
from castpoi.core.quantities import duration_words
from castpoi.core.staging import alone_in
from castpoi.experiments.estimate import Estimator, PastRun, remaining
from castpoi.experiments.experiment import RUNS, Experiment
from castpoi.experiments.folder import Planned, Record, State, SuiteFolder

WORKER: Final = (sys.executable, "-m", "castpoi.experiments.worker")
_THREADS: Final = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "POLARS_MAX_THREADS",
)
_POLL_SECONDS: Final = 0.1
_SECONDS_TO_END: Final = 10


class Status(Protocol):
    """Stores the state of each experiment."""

    def note(self, experiment: Experiment, state: State, why: str, record: Record) -> None:
        """Store the state of an experiment; once it is done, also how it was made."""


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How many experiments run at a time, and on how many cores."""

    jobs: int = 1
    """Experiments that run at the same time."""
    threads: int | None = None
    """CPU cores to share among the jobs.  [default: all]"""
    any_code: bool = False
    """Keep results of another version of the method, instead of making them again."""
    keep_runs: bool = False
    """Keep the trained weights."""

    @property
    def cores(self) -> int:
        """The cores for all jobs together: by default all that this process may use."""
        if self.threads is None and hasattr(os, "sched_getaffinity"):
            return len(os.sched_getaffinity(0))
        return self.threads or os.cpu_count() or 1

    @property
    def threads_per_job(self) -> int:
        """Cores of one experiment."""
        return max(1, self.cores // self.jobs)


@dataclass(frozen=True)
class Failure:
    """An experiment that failed, and why."""

    experiment: Experiment
    problem: str


def run_plan(
    plan: Sequence[Planned],
    folder: SuiteFolder,
    *,
    status: Callable[[], Status],
    past_runs: Sequence[PastRun],
    pace: Pace,
    progress: Progress,
    report: Callable[[str], None],
    name: str,
) -> list[Failure]:
    """Run all experiments of a plan that are not done; returns the failures in their order.

    The status is opened under the lock of the folder; `name` is that of the progress bar.
    """
    with ExitStack() as held:
        with writing(folder.root):
            (folder.root / RUNS).mkdir(parents=True, exist_ok=True)
            lock = held.enter_context(alone_in(folder.root, lock=f"{RUNS}/.lock"))
        for each in plan:
            if each.is_done and not read_or_nothing(folder.spec(each.experiment)).get("keep", True):
                folder.remove_run(each.experiment)  # a killed command could not
        runner = _Runner(
            folder=folder,
            status=status(),
            pace=pace,
            estimator=Estimator(past_runs, threads=pace.threads_per_job),
            lock=lock,
            task=held.enter_context(progress.task(name, total=len(plan))),
            report=report,
            total=len(plan),
            waiting=[each.experiment for each in plan if not each.is_done],
        )
        try:
            runner.run()
        finally:
            runner.stop()
        return runner.failures


@dataclass(kw_only=True)
class _Runner:
    """The experiments that wait, that are running, and that have failed."""

    folder: SuiteFolder
    status: Status
    pace: Pace
    estimator: Estimator
    lock: int
    task: Task
    report: Callable[[str], None]
    total: int  # with those that were done before
    waiting: list[Experiment]
    running: "list[_Worker]" = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)

    def run(self) -> None:
        """Start, watch and close experiments until none is left."""
        self.task.advance(self.total - len(self.waiting))
        while self.waiting or self.running:
            while self.waiting and len(self.running) < self.pace.jobs:
                self._start(self.waiting.pop(0))
            time.sleep(_POLL_SECONDS)
            for worker in [each for each in self.running if each.process.poll() is not None]:
                self.running.remove(worker)
                self._end(worker.experiment, worker.outcome())
            self.task.describe(self._progress())

    def stop(self) -> None:
        """End what is running; the next command resumes it."""
        for worker in self.running:
            worker.stop()
            self.status.note(worker.experiment, "waiting", "interrupted", {})

    def _start(self, experiment: Experiment) -> None:
        try:
            worker = _Worker(experiment, self.folder, self.pace, lock=self.lock)
        except (CastPoiError, OSError) as problem:
            self._end(experiment, {"error": str(problem)})
            return
        self.running.append(worker)
        self.status.note(experiment, "running", "", {})
        self.report(f"{experiment.name} has started")

    def _end(self, experiment: Experiment, outcome: dict[str, Any]) -> None:
        self.task.advance()
        if "error" in outcome:
            self.failures.append(Failure(experiment, outcome["error"]))
            self.status.note(experiment, "failed", outcome["error"], {})
            self.report(f"{experiment.name} FAILED: {outcome['error']}; {self._progress()}")
            return
        self.estimator.learn(PastRun.of(outcome))
        self.status.note(experiment, "done", "", outcome)
        if not self.pace.keep_runs:
            self.folder.remove_run(experiment)
        took = duration_words(outcome["seconds"])
        self.report(f"{experiment.name} is done ({took}); {self._progress()}")

    def _progress(self) -> str:
        """How many experiments have ended, and the time that is left."""
        left = remaining(
            [self.estimator.estimate(each) for each in self.waiting],
            [(self.estimator.estimate(each.experiment), each.seconds) for each in self.running],
            jobs=self.pace.jobs,
        )
        unfinished = len(self.waiting) + len(self.running)
        parts = [f"{self.total - unfinished} of {self.total}"]
        parts += [f"{len(self.failures)} failed"] if self.failures else []
        parts += [f"{left.words} left"] if unfinished else []
        return ", ".join(parts)


class _Worker:
    """An experiment that is running in a process of its own."""

    def __init__(
        self, experiment: Experiment, folder: SuiteFolder, pace: Pace, *, lock: int
    ) -> None:
        self.experiment = experiment
        self._outcome = folder.outcome(experiment)
        self._began = time.time()
        spec, log = folder.spec(experiment), folder.log(experiment)
        content = spec_of(experiment, folder, pace) | {"started": self._began}
        if read_or_nothing(spec).get("record", {}).get("key") != experiment.key:
            folder.remove_run(experiment)  # it was begun with other settings or another version
        self._outcome.unlink(missing_ok=True)
        spec.parent.mkdir(parents=True, exist_ok=True)
        log.parent.mkdir(parents=True, exist_ok=True)
        write_json(spec, content)
        with log.open("ab") as output:
            for command in content["record"]["commands"]:
                output.write(f"{now_utc()} $ {command}\n".encode())
            output.flush()
            self.process = subprocess.Popen(
                [*WORKER, str(spec)],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **dict.fromkeys(_THREADS, str(pace.threads_per_job))},
                pass_fds=() if sys.platform == "win32" else (lock,),
            )

    @property
    def seconds(self) -> float:
        """How long it has been running."""
        return time.time() - self._began

    def outcome(self) -> dict[str, Any]:
        """The record that the worker has written, or the error."""
        self._close_pipe()
        code, outcome = self.process.returncode, read_or_nothing(self._outcome)
        if outcome:
            return outcome
        if code == -signal.SIGKILL:
            return {"error": "it was killed, perhaps because memory ran out"}
        return {"error": f"it ended with exit code {code}; see its log"}

    def stop(self) -> None:
        """End the process."""
        self._close_pipe()
        self.process.terminate()
        try:
            self.process.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _close_pipe(self) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()


def spec_of(experiment: Experiment, folder: SuiteFolder, pace: Pace) -> dict[str, Any]:
    """The spec that the worker of an experiment reads; `record` goes into the result."""
    return {
        "city": str(experiment.city.folder),
        "run": str(folder.run(experiment)),
        "result": str(folder.result(experiment)),
        "outcome": str(folder.outcome(experiment)),
        "part": experiment.part,
        "keep": pace.keep_runs,
        "record": {
            "city": experiment.city.name,
            "row": asdict(experiment.row),
            "seed": experiment.seed,
            "key": experiment.key,
            "commands": commands_of(experiment, folder),
            "threads": pace.threads_per_job,
            "train_checkins": experiment.city.train_checkins,
        },
    }


def commands_of(experiment: Experiment, folder: SuiteFolder) -> list[str]:
    """The commands by which a person can make the result of an experiment."""
    run, city = str(folder.run(experiment)), str(experiment.city.folder)
    result = ["--out", str(folder.result(experiment)), "--overwrite"]
    if not experiment.row.is_learned:
        words = ["castpoi", "evaluate", "--city", city, "--model", experiment.row.method, *result]
        return [shlex.join(words)]
    training = experiment.training_words(run)
    if experiment.part != columns.TEST:
        return [shlex.join([*training, "--holdout", experiment.part])]
    evaluation = ["castpoi", "evaluate", run, "--city", city, *result]
    return [shlex.join(training), shlex.join(evaluation)]
