"""A castpoi command in its own process, killed at a given moment."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from chaos.castpoi_command import COUNTED
from chaos.page import ROOT

PATIENCE_SECONDS: Final = 120.0
"""A command that takes longer is killed and counts as lost."""
_FAULTS: Final = ("Traceback", "panicked", "bug in castpoi")


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str
    seconds: float
    peak_mb: float

    @property
    def was_killed(self) -> bool:
        """Whether SIGKILL ended it."""
        return self.code == -signal.SIGKILL

    @property
    def changes(self) -> int:
        """Changes of a name in its folder, of a command that was not killed."""
        return int(self.err.rpartition(COUNTED)[2])

    def why_unclear(self) -> str | None:
        """Why this is not a clear refusal; None if it is one sentence and exit code 1."""
        for word in _FAULTS:
            if word in self.err or word in self.out:
                return f"ended with '{word}'"
        if self.code != 1:
            return f"ended with exit code {self.code}"
        try:
            error = json.loads(self.out)["error"]
        except (ValueError, KeyError, TypeError):
            return f"printed no JSON error but {self.out[:80]!r}"
        return None if str(error).strip() else "refused without a sentence"


def castpoi(
    *words: object,
    folder: Path,
    kill_at: int = 0,
    kill_after: float | None = None,
    patience: float = PATIENCE_SECONDS,
) -> Ended:
    """Run a command with --json; kill it at the n-th change of a name in `folder`, or by time."""
    command = [sys.executable, "-m", "chaos.castpoi_command", str(kill_at), str(folder)]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        began = time.perf_counter()
        process = subprocess.Popen(
            [*command, *map(str, words), "--json"],
            stdout=out,
            stderr=err,
            cwd=ROOT,
            env=environment(),
        )
        timer = threading.Timer(patience if kill_after is None else kill_after, process.kill)
        timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - began
        texts = [_text(file) for file in (out, err)]
    return Ended(
        code=process.returncode,
        out=texts[0],
        err=texts[1],
        seconds=seconds,
        peak_mb=usage.ru_maxrss / 1024,
    )


def environment() -> dict[str, str]:
    """The environment of a command: one thread, and no bytecode files next to the sources."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}


def done(words: Sequence[object], folder: Path) -> Ended:
    """Run a command that must succeed, because later steps need its output."""
    ended = castpoi(*words, folder=folder)
    if ended.code:
        raise SystemExit(f"castpoi {' '.join(map(str, words))} failed: {ended.out}{ended.err}")
    return ended


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(1 << 20).decode(errors="replace")
