"""Wall time and peak memory of a command in a process of its own."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Measured:
    """Time and memory of one command, and the JSON object that it printed."""

    seconds: float
    peak_gb: float
    printed: dict[str, Any]


def best_of(times: int, work: Callable[[], object]) -> float:
    """Seconds of the fastest of several calls."""
    best = float("inf")
    for _ in range(times):
        began = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - began)
    return best


def measured(*command: str) -> Measured:
    """Run a python command (`-m castpoi.cli.main ...`) and measure it."""
    with tempfile.TemporaryFile("w+") as printed:
        began = time.perf_counter()
        process = subprocess.Popen([sys.executable, *command], stdout=printed)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        printed.seek(0)
        text = printed.read()
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with exit code {process.returncode}")
    return Measured(seconds, usage.ru_maxrss / 1e6, json.loads(text))


def synthetic_source(folder: Path, checkins: int) -> Path:
    """A raw csv of about this many check-ins; created once."""
    source = folder / f"synthetic-{checkins}.csv"
    if not source.exists():
        people = max(round(checkins / 96), 10)
        measured(
            *("-m", "castpoi.cli.main", "data", "synthesize", "--users", str(people)),
            *("--places", str(max(people, 2000)), "--days", "120", "--seed", "7"),
            *("--out", str(source), "--json"),
        )
    return source
