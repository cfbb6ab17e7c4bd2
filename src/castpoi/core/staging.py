"""Staging folders: new files are built next to their target and then moved to it.

    .NAME.1a2b3c4d           the future NAME, or a former NAME that is being removed
    .NAME.1a2b3c4d.former    a replaced NAME, for a moment, on systems without an atomic exchange

A process holds a lock on its staging folder. A staging folder that no living process holds was left
by a killed command: the next command that writes NAME removes it. A stray `.former` is moved back
if NAME is missing.
"""

import ctypes
import errno
import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final
from uuid import uuid4

from castpoi.core.lock import try_lock

_FORMER: Final = ".former"
_FROM_HERE: Final = -100  # AT_FDCWD of Linux
_EXCHANGE: Final = 2  # RENAME_EXCHANGE of Linux


@contextmanager
def staging_beside(target: Path) -> Iterator[Path]:
    """A new, locked folder next to the target; it is removed at the end."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as held:
        while True:
            staging = target.with_name(f".{target.name}.{uuid4().hex[:8]}")
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
    stray = folder.with_name(f".{folder.name}.{uuid4().hex[:8]}")
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


def _is_former(stray: Path) -> bool:
    return stray.name.endswith(_FORMER)


def exchange(new: Path, target: Path) -> None:
    """Exchange two folders: in one step where the system can, otherwise in three."""
    if _exchanged_at_once(new, target):
        return
    former = new.with_name(new.name + _FORMER)
    with _locked(target):  # and so is what `former` is from the next line on
        target.rename(former)
        try:
            new.rename(target)
        except BaseException:
            former.rename(target)
            raise
        former.rename(new)


def sync(path: Path) -> None:
    """Have the disk write a file, or the names in a folder, before this returns."""
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
    """The same for a folder and everything in it."""
    for path in folder.rglob("*"):
        sync(path)
    sync(folder)


def _strays(target: Path) -> list[Path]:
    """All staging folders of a target, of living and of killed commands."""
    is_stray = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{8}}({re.escape(_FORMER)})?")
    try:
        return sorted(each for each in target.parent.iterdir() if is_stray.fullmatch(each.name))
    except OSError:  # the parent is missing, or may not be read
        return []


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


def _exchanged_at_once(one: Path, other: Path) -> bool:
    """Exchange two paths in one step; False where the system or the file system cannot."""
    if sys.platform != "linux":
        return False
    renameat2 = getattr(ctypes.CDLL(None), "renameat2", None)
    if renameat2 is None:
        return False
    paths = _FROM_HERE, os.fsencode(one), _FROM_HERE, os.fsencode(other)
    return bool(renameat2(*paths, _EXCHANGE) == 0)
