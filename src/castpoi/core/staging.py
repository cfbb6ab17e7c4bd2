"""Staging folders and locks: how a folder appears whole, and how a killed command is cleaned up.

    .NAME.1a2b3c4d           the future NAME, or a former NAME that is being removed
    .NAME.1a2b3c4d.former    a replaced NAME, for a moment, on systems without an atomic exchange

A process holds a lock on its staging folder. A staging folder that no living process holds was left
by a killed command: the next command that writes NAME removes it. A stray `.former` is moved back
if NAME is missing.

A lock belongs to the open file, so it ends with the last process that has it open. There is none on
Windows: nothing is swept there, and two commands in one folder are not noticed.
"""

import ctypes
import errno
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final
from uuid import uuid4

from castpoi.core.errors import BadInput

LOCK: Final = ".lock"
_PATIENCE_SECONDS: Final = 10.0  # longer than a worker needs to notice that its suite is dead
_FORMER: Final = ".former"
_FROM_HERE: Final = -100  # AT_FDCWD of Linux
_EXCHANGE: Final = 2  # RENAME_EXCHANGE of Linux


@contextmanager
def staging_beside(target: Path) -> Iterator[Path]:
    """Create a locked folder next to the target; it is removed at the end."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as held:
        while True:
            staging = _stray_name(target)
            staging.mkdir()  # with the permissions that this user's new folders have
            held.enter_context(_locked(staging, wait=True))
            if staging.exists():  # not removed by another command before it was locked
                break
        held.callback(shutil.rmtree, staging, ignore_errors=True)
        yield staging


def sweep(target: Path) -> None:
    """Remove what killed commands left next to the target; put a missing target back first."""
    recover(target)
    for stray in _strays(target):
        if _is_former(stray) and not target.exists():  # the only copy, which could not be moved
            continue
        with _locked(stray) as is_mine:
            if is_mine:
                shutil.rmtree(stray, ignore_errors=True)


def remove(folder: Path) -> None:
    """Remove a folder. After a kill it is whole, or the next `sweep` removes the rest."""
    stray = _stray_name(folder)
    with _locked(folder):
        folder.rename(stray)
        shutil.rmtree(stray, ignore_errors=True)


def recover(target: Path) -> None:
    """Put the former target back if a command was killed while it replaced it."""
    for stray in _strays(target):
        if _is_former(stray) and not target.exists():
            with _locked(stray) as is_mine, suppress(OSError):
                if is_mine:
                    stray.rename(target)


def exchange(new: Path, target: Path) -> None:
    """Exchange two folders: in one step where the system can, otherwise in three."""
    if _exchanged_at_once(new, target):
        return
    former = new.with_name(new.name + _FORMER)
    with _locked(target):  # the lock stays with the folder when it is renamed
        target.rename(former)
        try:
            new.rename(target)
        except BaseException:
            former.rename(target)
            raise
        former.rename(new)


def _exchanged_at_once(one: Path, other: Path) -> bool:
    """Exchange two paths in one step; False where the system or the file system cannot."""
    if sys.platform != "linux":
        return False
    renameat2 = getattr(ctypes.CDLL(None), "renameat2", None)
    if renameat2 is None:
        return False
    paths = _FROM_HERE, os.fsencode(one), _FROM_HERE, os.fsencode(other)
    return bool(renameat2(*paths, _EXCHANGE) == 0)


def _stray_name(target: Path) -> Path:
    return target.with_name(f".{target.name}.{uuid4().hex[:8]}")


def _strays(target: Path) -> list[Path]:
    """All staging folders of a target, of living and of killed commands."""
    is_stray = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{8}}({re.escape(_FORMER)})?")
    try:
        return sorted(each for each in target.parent.iterdir() if is_stray.fullmatch(each.name))
    except OSError:  # the parent is missing, or may not be read
        return []


def _is_former(stray: Path) -> bool:
    return stray.name.endswith(_FORMER)


def sync(path: Path) -> None:
    """Write a file, or the names in a folder, to the disk before this returns."""
    if sys.platform == "win32":  # syncs only what is open for writing
        return
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    except OSError as problem:
        # some network file systems cannot sync a folder
        if not (path.is_dir() and problem.errno in (errno.EBADF, errno.EINVAL)):
            raise
    finally:
        os.close(number)


def sync_tree(folder: Path) -> None:
    """Write a folder and everything in it to the disk."""
    for path in folder.rglob("*"):
        sync(path)
    sync(folder)


@contextmanager
def alone_in(
    folder: Path, *, lock: str = LOCK, patience_seconds: float = _PATIENCE_SECONDS
) -> Iterator[int]:
    """Hold a lock file of a folder while the block runs; yields the number of the open file.

    Waits up to `patience_seconds` for another command. A process that inherits the open file
    holds the lock as well.
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


@contextmanager
def _locked(folder: Path, *, wait: bool = False) -> Iterator[bool]:
    """Hold the lock of a folder; False where another process holds it, or where none can be had."""
    with ExitStack() as held:
        try:
            number = os.open(folder, os.O_RDONLY)
            held.callback(os.close, number)
            is_mine = sys.platform != "win32" and try_lock(number, wait=wait)
        except OSError:  # it is gone, or the file system has no locks
            is_mine = False
        yield is_mine


def try_lock(number: int, *, wait: bool = False) -> bool:
    """Lock an open file or folder; False if another process holds it and `wait` is off."""
    if sys.platform == "win32":
        return True
    import fcntl

    try:
        fcntl.flock(number, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
