"""One experiment under way: its commands one after the other, each in a process of its own.

A crash, or a process that the system kills for want of memory, ends one experiment and not the
suite. The processes hang on a pipe of the suite (see `cli/tethered.py`), so none outlives it.
"""

import os
import shlex
import signal
import subprocess
import sys
from dataclasses import asdict
from textwrap import shorten
from time import perf_counter
from typing import Any, Final

from castpoi.core.errors import BrokenFolder
from castpoi.core.files import read_manifest
from castpoi.core.provenance import now_utc
from castpoi.experiments.experiment import Experiment
from castpoi.experiments.folder import SuiteFolder
from castpoi.experiments.key import key_of
from castpoi.methods.run import LOG
from castpoi.training.train import seconds_before

_TETHERED: Final = (sys.executable, "-m", "castpoi.cli.tethered")
_THREAD_WORDS: Final = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "POLARS_MAX_THREADS",
)
_SECONDS_TO_END: Final = 10
_LONGEST_PROBLEM: Final = 300  # characters; the log has it all


class Job:
    """An experiment under way."""

    def __init__(
        self,
        experiment: Experiment,
        folder: SuiteFolder,
        *,
        threads: int,
        lock: int,
        any_code: bool = False,
    ) -> None:
        self.experiment = experiment
        self.problem = ""
        """Why it failed; empty if it did not."""
        self._folder = folder
        self._threads = threads
        self._lock = lock
        self._key = folder.begin(experiment, key_of(experiment), any_code=any_code)
        self._commands = commands_of(experiment, folder)
        self._had_run = folder.has_run(experiment)
        self._waiting = self._commands[1:] if self._had_run else self._commands[:]
        self._began = perf_counter()
        folder.log(experiment).parent.mkdir(parents=True, exist_ok=True)
        # no process where the run of a trial is whole and only its proof was never written
        self._process = self._start(self._waiting.pop(0)) if self._waiting else None

    @property
    def seconds(self) -> float:
        """How long it has been under way."""
        return perf_counter() - self._began

    def is_over(self) -> bool:
        """Whether it has ended, well or not; starts its next command where one is due."""
        code = 0 if self._process is None else self._process.poll()
        if code is None:
            return False
        self._close_pipe()
        if code != 0:
            self.problem = self._told(code)
            return True
        if not self._waiting:
            return True
        try:
            self._process = self._start(self._waiting.pop(0))
        except OSError as problem:
            self.problem = str(problem)
        return bool(self.problem)

    def close(self, *, keep_run: bool) -> dict[str, Any]:
        """Prove that it is done; remove its run unless that shall stay."""
        made = self._folder.made(self.experiment)
        if made.get("fingerprint") != self.experiment.city.fingerprint:
            raise BrokenFolder(
                f"{self.experiment.city.folder} was prepared anew while {self.experiment.name} was "
                "under way; give the same command again"
            )
        proof = {**self._proof(), "keeps_run": keep_run}
        self._folder.close(self.experiment, proof)
        if not keep_run:
            self._folder.remove_run(self.experiment)
        return proof

    def stop(self) -> None:
        """End its process, if one is running."""
        if self._process is None:
            return
        self._close_pipe()
        self._process.terminate()
        try:
            self._process.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _start(self, words: list[str]) -> "subprocess.Popen[bytes]":
        path = self._folder.log(self.experiment)
        with path.open("ab") as log:
            log.write(f"\n{now_utc()} $ {shlex.join(['castpoi', *words])}\n".encode())
            log.flush()
            return subprocess.Popen(
                [*_TETHERED, *words],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **dict.fromkeys(_THREAD_WORDS, str(self._threads))},
                pass_fds=() if sys.platform == "win32" else (self._lock,),
            )

    def _close_pipe(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()

    def _told(self, code: int) -> str:
        """Why a command failed, in its own last words if it had any."""
        if code == -signal.SIGKILL:
            return "it was killed, perhaps for want of memory"
        if code < 0:
            return f"it was ended by signal {-code}"
        lines = self._folder.log(self.experiment).read_text(errors="replace").splitlines()
        said = next((line.strip() for line in reversed(lines) if line.strip()), "")
        if " $ castpoi " in said:  # the command itself, as `_start` wrote it
            return f"it ended with exit code {code} and no word"
        if not said.startswith("castpoi: "):
            said = f"it ended with exit code {code}; its last words: {said}"
        return shorten(said.removeprefix("castpoi: "), _LONGEST_PROBLEM, placeholder=" ...")

    def _proof(self) -> dict[str, Any]:
        experiment = self.experiment
        return {
            "kind": "experiment",
            "city": experiment.city.name,
            "row": asdict(experiment.row),
            "seed": experiment.seed,
            "key": self._key,
            "commands": [shlex.join(["castpoi", *words]) for words in self._commands],
            "threads": self._threads,
            "train_checkins": experiment.city.train_checkins,
            "seconds": round(self._seconds_before() + self.seconds, 3),
            "ended_utc": now_utc(),
        }

    def _seconds_before(self) -> float:
        """What an earlier attempt has spent on the run: all of it, or its first epochs."""
        run = self._folder.run(self.experiment)
        if self._had_run:
            return float(read_manifest(run, kind="run").get("wall_seconds", 0.0))
        log = run / LOG
        return (
            seconds_before(log.read_text(encoding="utf-8").splitlines()) if log.is_file() else 0.0
        )


def commands_of(experiment: Experiment, folder: SuiteFolder) -> list[list[str]]:
    """The words after `castpoi` that make the result of an experiment, or the run of a trial."""
    row, result = experiment.row, str(folder.result(experiment))
    city, run = str(experiment.city.folder), str(folder.run(experiment))
    if not experiment.needs_training:
        words = ["evaluate", "--city", city, "--model", row.method, "--out", result, "--overwrite"]
        return [words]
    if experiment.is_trial:
        return [[*training_words(experiment, run), "--part", experiment.part]]
    evaluate = ["evaluate", run, "--city", city, "--out", result, "--overwrite"]
    return [training_words(experiment, run), evaluate]


def training_words(experiment: Experiment, run: str) -> list[str]:
    """The words after `castpoi` that train the row of an experiment."""
    row, city = experiment.row, str(experiment.city.folder)
    words = ["train", city, "--model", row.method, "--seed", str(experiment.seed), "--out", run]
    if row.preset is not None:
        words += ["--preset", row.preset]
    for name, value in row.settings.items():
        words += ["--set", f"{name}={value}"]
    return words
