"""A small disk of our own (tmpfs), which can be filled and can grow; only root may mount one."""

import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class SmallDisk:
    """A mounted disk of a few megabytes."""

    folder: Path

    def grow(self, megabytes: int) -> None:
        """Make room."""
        _mount("-o", f"remount,size={megabytes}m", str(self.folder))


def small_disk(folder: Path, *, megabytes: int) -> AbstractContextManager[SmallDisk] | str:
    """A disk mounted at a new folder; where this machine allows none, the reason."""
    folder.mkdir()
    try:
        _mount("-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder))
    except (OSError, subprocess.CalledProcessError):
        return "mounting a tmpfs needs root"
    return _mounted(folder)


@contextmanager
def _mounted(folder: Path) -> Iterator[SmallDisk]:
    try:
        yield SmallDisk(folder)
    finally:
        unmount(folder)


def unmount(folder: Path) -> None:
    """Unmount a disk, also one that somebody still has open."""
    subprocess.run(["umount", "-l", str(folder)], check=True, capture_output=True)


def _mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True, capture_output=True)
