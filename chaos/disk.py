"""A small disk (tmpfs) that can be filled and enlarged; only root may mount one."""

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
        """Enlarge the disk."""
        _mount("-o", f"remount,size={megabytes}m", str(self.folder))


def small_disk(folder: Path, *, megabytes: int) -> AbstractContextManager[SmallDisk] | str:
    """A disk mounted at a new folder, or the reason why this machine does not allow it."""
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
    """Unmount a disk, also if a process has files open on it."""
    subprocess.run(["umount", "-l", str(folder)], check=True, capture_output=True)


def _mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True, capture_output=True)
