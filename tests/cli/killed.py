"""Commands in processes of their own, and how they are killed in the middle of a training."""

import signal
import subprocess
import sys
import time
from pathlib import Path


def started(*words: object) -> "subprocess.Popen[bytes]":
    """A castpoi command in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "castpoi.cli.main", *map(str, words)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def killed_in_training(run: Path, *words: object) -> None:
    """Start a command, and kill it when the training of this run has its first checkpoint."""
    process = started(*words)
    state = run.with_name(f"{run.name}.training") / "checkpoint.json"
    deadline = time.monotonic() + 240
    while not state.is_file() and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
