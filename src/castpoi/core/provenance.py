"""Origin of a run or a result for its manifest: versions, commit, time and memory."""

import platform
import subprocess
import sys
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any, Final

from castpoi import __version__

_LIBRARIES: Final[tuple[str, ...]] = ("numpy", "polars", "safetensors", "torch")
_TIMEOUT_SECONDS: Final = 5


@dataclass(frozen=True)
class Stopwatch:
    """Measures a piece of work from its creation."""

    started_utc: str = field(default_factory=lambda: now_utc())
    _start: float = field(default_factory=perf_counter)

    @property
    def seconds(self) -> float:
        """Wall time since the start."""
        return perf_counter() - self._start

    def plus(self, seconds: float) -> "Stopwatch":
        """A stopwatch that started this much earlier."""
        return replace(self, _start=self._start - seconds)

    def provenance(self) -> dict[str, Any]:
        """Versions, commit, start, end, wall time and memory of the work that ends now."""
        return {
            "versions": versions(),
            "commit": commit(),
            "started_utc": self.started_utc,
            "ended_utc": now_utc(),
            "wall_seconds": round(self.seconds, 3),
            "peak_memory_mb": peak_memory_mb(),
        }


def now_utc() -> str:
    """This instant, as `2012-04-03T18:00:09+00:00`."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def peak_memory_mb() -> int | None:
    """Peak memory of this process in MB; None on Windows."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(most / (2**20 if sys.platform == "darwin" else 2**10))  # bytes, or kilobytes


def versions() -> dict[str, str]:
    """Versions of castpoi, Python and the libraries that affect the numbers."""
    used = {name: version(name) for name in _LIBRARIES if name in sys.modules}
    return {"castpoi": __version__, "python": platform.python_version(), **used}


@cache
def commit() -> str | None:
    """The commit of castpoi's own checkout, `-dirty` if files differ; None outside a checkout."""
    # An installed castpoi may be inside another project's checkout, whose commit is irrelevant.
    if _git("ls-files", "--error-unmatch", "__init__.py") is None:
        return None
    head = _git("rev-parse", "HEAD")
    # 'git describe --dirty' would lock and write the index, and a commit at that moment would fail
    changes = _git("--no-optional-locks", "status", "--porcelain", "--untracked-files=no")
    if head is None or changes is None:
        return None
    return f"{head}-dirty" if changes else head


def _git(*words: str) -> str | None:
    try:
        ended = subprocess.run(
            ["git", "-C", str(Path(__file__).parent), *words],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return ended.stdout.strip()
