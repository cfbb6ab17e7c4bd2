"""One command at a time in a folder: that of a suite, of trials, or of a training.

The lock is held by the open file, so it goes with the last process that has it: also the processes
that a killed suite has left behind hold it until they are gone.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from castpoi.core.errors import BadInput

LOCK: Final = ".lock"
_PATIENCE_SECONDS: Final = 10.0
"""Longer than an orphan takes to notice that its suite is dead."""


@contextmanager
def alone_in(
    folder: Path, *, lock: str = LOCK, patience_seconds: float = _PATIENCE_SECONDS
) -> Iterator[int]:
    """Hold the lock of a folder while the block runs; the number is that of the open file.

    `lock` is the file inside, `patience_seconds` how long to wait for another command.
    """
    with (folder / lock).open("w") as file:
        deadline = time.monotonic() + patience_seconds
        while not try_lock(file.fileno()):
            if time.monotonic() > deadline:
                raise BadInput(
                    f"another castpoi command is at work in {folder}; wait for it, or choose "
                    "another --out"
                )
            time.sleep(0.1)
        yield file.fileno()


def try_lock(number: int, *, wait: bool = False) -> bool:
    """Lock an open file or folder; False if another process holds it and we do not wait."""
    if sys.platform == "win32":  # knows no such lock: it is for the person to see to it
        return True
    import fcntl

    try:
        fcntl.flock(number, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
