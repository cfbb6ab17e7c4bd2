"""Memory: what is free, what a training needs, and releasing what is no longer used."""

import ctypes
import os
from pathlib import Path
from typing import Final

import torch

from castpoi.core.errors import BadInput
from castpoi.model.config import ModelConfig

_UNKNOWN_FREE_BYTES: Final = 2 * 2**30  # where the system does not report it
_SHARE: Final = 0.75  # of the free memory; the rest is for features kept between epochs
_FLOAT_BYTES: Final = 4
_GIB: Final = 2**30
_MATRICES: Final = 12  # of targets x places that a step holds, about
_COPIES: Final = 7  # of the place table: weights, gradient, optimizer, averages
_VISIT_BYTES: Final = 600  # of the city, and of the features of each visit
_CPU: Final = torch.device("cpu")


def free_bytes(
    device: torch.device = _CPU,
    *,
    meminfo: Path = Path("/proc/meminfo"),
    cgroup: Path = Path("/sys/fs/cgroup"),
) -> int:
    """Free memory of a CUDA card, else of the machine and of the container around the process.

    Apple's processors (mps) share the memory of the machine. Systems other than Linux report
    nothing; a modest guess is returned there.
    """
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    found = [free for free in (_of_machine(meminfo), _of_container(cgroup)) if free is not None]
    return min(found, default=_UNKNOWN_FREE_BYTES)


def bytes_of_training(
    model: ModelConfig, *, visits: int, places: int, targets: int, read: int
) -> int:
    """Estimate of what a training holds, with this many targets a step and candidates read each."""
    target = _FLOAT_BYTES * _MATRICES * places
    if model.candidate_conditioning:
        keys_and_values = 4 * model.window * model.width  # as gathered, and with their age added
        attention = 6 * model.heads * model.window  # logits, bias, mask, softmax and their copies
        vectors = 10 * model.width + 4 * model.feed_forward_width
        candidate = model.reader_layers * (attention + vectors) + 8 * model.width
        target += _FLOAT_BYTES * (model.reader_layers * keys_and_values + read * candidate)
    return targets * target + _COPIES * _FLOAT_BYTES * places * model.width + _VISIT_BYTES * visits


def check_memory(needed: int, free: int) -> None:
    """Refuse a training that would not fit, before it begins.

    Raises:
        BadInput: it needs more than its share of the free memory.
    """
    if needed > _SHARE * free:
        raise BadInput(
            f"training would take about {needed / _GIB:.1f} GiB of memory, and {free / _GIB:.1f} "
            f"GiB are free, of which it may take {_SHARE:.0%}; lower width, windows_per_step or "
            "batch, prepare the city with fewer places (--min-place-checkins), or use a larger "
            "machine"
        )


def give_back() -> None:
    """Return memory that this process holds and does not use, where its C library can.

    Batches of ever different shapes fragment the heap: in sixty epochs of BERT4Rec on New York it
    grew from 0.7 to 2 GB.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    if trim is not None:
        trim(0)


def _of_machine(meminfo: Path) -> int | None:
    try:
        lines = meminfo.read_text().splitlines()
        free = next(line for line in lines if line.startswith("MemAvailable:"))
        return int(free.split()[1]) * 1024
    except (OSError, StopIteration, ValueError, IndexError):
        return None


def _of_container(cgroup: Path) -> int | None:
    try:
        limit = int((cgroup / "memory.max").read_text())
        return max(0, limit - int((cgroup / "memory.current").read_text()))
    except (OSError, ValueError):  # no container, or one without a limit
        return None
