"""Makes what a plan lacks: several workers at a time, and on with the others if one fails."""

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, Protocol

from castpoi.checkins import record as columns
from castpoi.core.errors import CastPoiError
from castpoi.core.files import read_or_nothing, write_json, writing
from castpoi.core.progress import Progress, Task
from castpoi.core.provenance import now_utc
from castpoi.core.quantities import duration_words
from castpoi.core.staging import alone_in
from castpoi.experiments.estimate import Estimator, PastRun, remaining
from castpoi.experiments.experiment import RUNS, Experiment
from castpoi.experiments.folder import Planned, SuiteFolder

WORKER: Final = (sys.executable, "-m", "castpoi.experiments.worker")
_THREADS: Final = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "POLARS_MAX_THREADS",
)
_POLL_SECONDS: Final = 0.1
_SECONDS_TO_END: Final = 10

State = Literal["done", "failed", "running", "waiting"]


class Status(Protocol):
    """Stores the state of each experiment."""

    def note(self, experiment: Experiment, state: State, why: str = "") -> None:
        """Store the state of an experiment that is not done."""

    def note_done(self, experiment: Experiment, record: dict[str, Any]) -> None:
        """Store how an experiment was made."""


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How many experiments run at a time, and on how many cores."""

    jobs: int = 1
    threads: int  # cores for all jobs together
    keep_runs: bool = False
    any_code: bool = False

    @property
    def threads_per_job(self) -> int:
        """Cores of one experiment."""
        return max(1, self.threads // self.jobs)


@dataclass(frozen=True)
class Failure:
    """An experiment that failed, and why."""

    experiment: Experiment
    problem: str


def cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def locked(folder: SuiteFolder) -> Iterator[int]:
    """Hold the lock of a suite's folder; yields the number of the open file."""
    with ExitStack() as held:
        with writing(folder.root):
            (folder.root / RUNS).mkdir(parents=True, exist_ok=True)
            lock = held.enter_context(alone_in(folder.root, lock=f"{RUNS}/.lock"))
        yield lock


def run_plan(
    plan: Sequence[Planned],
    folder: SuiteFolder,
    *,
    status: Callable[[], Status],
    past_runs: Sequence[PastRun],
    pace: Pace,
    progress: Progress,
    say: Callable[[str], None],
    name: str,
) -> list[Failure]:
    """Make everything that a plan lacks; returns the failures in their order.

    The status is opened when nobody else can write to it; `name` is that of the progress bar.
    """
    with locked(folder) as lock, progress.task(name, total=len(plan)) as task:
        for each in plan:
            if each.is_done and not read_or_nothing(folder.spec(each.experiment)).get("keep", True):
                folder.remove_run(each.experiment)  # a killed command could not
        runner = _Runner(plan, folder, status(), past_runs, pace, lock, task, say)
        try:
            runner.run()
        finally:
            runner.stop()
        return runner.failures


class _Runner:
    """The experiments that wait, that are running, and that have failed."""

    def __init__(
        self,
        plan: Sequence[Planned],
        folder: SuiteFolder,
        status: Status,
        past_runs: Sequence[PastRun],
        pace: Pace,
        lock: int,
        task: Task,
        say: Callable[[str], None],
    ) -> None:
        self.failures: list[Failure] = []
        self._waiting = [each.experiment for each in plan if not each.is_done]
        self._running: list[_Worker] = []
        self._all, self._ended = len(plan), len(plan) - len(self._waiting)
        self._folder, self._status, self._pace = folder, status, pace
        self._estimator = Estimator(past_runs, threads=pace.threads_per_job)
        self._lock, self._task, self._say = lock, task, say
        task.advance(self._ended)

    def run(self) -> None:
        """Start, watch and close experiments until none is left."""
        while self._waiting or self._running:
            while self._waiting and len(self._running) < self._pace.jobs:
                self._start(self._waiting.pop(0))
            time.sleep(_POLL_SECONDS)
            for worker in [each for each in self._running if each.process.poll() is not None]:
                self._running.remove(worker)
                self._end(worker)
            self._task.describe(self._progress())

    def stop(self) -> None:
        """End what is running; the next command resumes it."""
        for worker in self._running:
            worker.stop()
            self._status.note(worker.experiment, "waiting", "interrupted")

    def _start(self, experiment: Experiment) -> None:
        try:
            worker = _Worker(experiment, self._folder, self._pace, lock=self._lock)
        except (CastPoiError, OSError) as problem:
            self._fail(experiment, str(problem))
            return
        self._running.append(worker)
        self._status.note(experiment, "running")
        self._say(f"{experiment.name} has started")

    def _end(self, worker: "_Worker") -> None:
        experiment, outcome = worker.experiment, worker.outcome()
        if "error" in outcome:
            self._fail(experiment, outcome["error"])
            return
        self._count()
        self._estimator.learn(PastRun.of(outcome))
        self._status.note_done(experiment, outcome)
        if not self._pace.keep_runs:
            self._folder.remove_run(experiment)
        took = duration_words(outcome["seconds"])
        self._say(f"{experiment.name} is done ({took}); {self._progress()}")

    def _fail(self, experiment: Experiment, problem: str) -> None:
        self._count()
        self.failures.append(Failure(experiment, problem))
        self._status.note(experiment, "failed", problem)
        self._say(f"{experiment.name} FAILED: {problem}; {self._progress()}")

    def _count(self) -> None:
        self._ended += 1
        self._task.advance()

    def _progress(self) -> str:
        """How many experiments have ended, and the time that is left."""
        left = remaining(
            [self._estimator.estimate(each) for each in self._waiting],
            [(self._estimator.estimate(each.experiment), each.seconds) for each in self._running],
            jobs=self._pace.jobs,
        )
        parts = [f"{self._ended} of {self._all}"]
        parts += [f"{len(self.failures)} failed"] if self.failures else []
        parts += [f"{left.words} left"] if self._waiting or self._running else []
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
        """The record that the worker has left, or the error."""
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
    """What the worker of an experiment reads; `record` goes into the result."""
    row = experiment.row
    return {
        "name": experiment.name,
        "city": str(experiment.city.folder),
        "run": str(folder.run(experiment)),
        "result": str(folder.result(experiment)),
        "outcome": str(folder.outcome(experiment)),
        "keep": pace.keep_runs,
        "method": row.method,
        "is_learned": row.is_learned,
        "preset": row.preset,
        "settings": dict(row.settings),
        "seed": experiment.seed,
        "part": experiment.part,
        "record": {
            "city": experiment.city.name,
            "row": asdict(row),
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
        return [shlex.join([*training, "--part", experiment.part])]
    evaluation = ["castpoi", "evaluate", run, "--city", city, *result]
    return [shlex.join(training), shlex.join(evaluation)]
