"""Memory: what is free, an estimate of what a training takes, and giving it back."""

import ctypes
import os
from pathlib import Path
from typing import Final

import torch

from castpoi.core.errors import BadInput
from castpoi.model.config import ModelConfig

_UNKNOWN_FREE_BYTES: Final = 2 * 2**30  # where the system does not say
_SHARE: Final = 0.75  # of what is free; the rest is for features that are kept between epochs
_FLOAT_BYTES: Final = 4
_GIB: Final = 2**30
_MATRICES: Final = 12  # of targets x places that a step holds, about
_COPIES: Final = 7  # of the place table: weights, gradient, optimizer, averages
_VISIT_BYTES: Final = 600  # of the city, and of what training computes of each visit


def free_bytes(meminfo: Path = Path("/proc/meminfo"), cgroup: Path = Path("/sys/fs/cgroup")) -> int:
    """Memory that can be taken without harm: of the machine, and of the container if there is one.

    Linux says so; elsewhere a modest guess is returned.
    """
    found = [free for free in (_of_machine(meminfo), _of_container(cgroup)) if free is not None]
    return min(found, default=_UNKNOWN_FREE_BYTES)


def free_bytes_of(device: torch.device) -> int:
    """Memory that can be taken where tensors live: that of a CUDA card, else that of the machine.

    Apple's processors (mps) have one memory for both.
    """
    if device.type != "cuda":
        return free_bytes()
    free, _ = torch.cuda.mem_get_info(device)
    return free


def bytes_of_training(
    model: ModelConfig, *, visits: int, places: int, targets: int, read: int
) -> int:
    """About what a training holds at once, where a step has `targets` and reads `read` of each."""
    step = targets * bytes_of_target(model, places=places, candidates=read)
    return step + _COPIES * _FLOAT_BYTES * places * model.width + _VISIT_BYTES * visits


def check_memory(needed: int, free: int) -> None:
    """Refuse a training that would not fit, before it begins.

    Raises:
        BadInput: it needs more than the free memory.
    """
    if needed <= _SHARE * free:
        return
    raise BadInput(
        f"training would take about {needed / _GIB:.1f} GiB of memory, and {free / _GIB:.1f} GiB "
        f"are free, of which it may take {_SHARE:.0%}; lower width, windows_a_step or batch, "
        "prepare the city with fewer places (--min-place-checkins), or use a larger machine"
    )


def bytes_of_target(config: ModelConfig, *, places: int, candidates: int) -> int:
    """About what a step holds for one target, the backbone aside."""
    scoring = _FLOAT_BYTES * _MATRICES * places
    if not config.candidate_conditioning:
        return scoring
    # what visits answer: keys and values, as they are gathered and with their age added
    answers = _FLOAT_BYTES * config.reader_layers * 4 * config.window * config.width
    return scoring + answers + candidates * bytes_of_reading(config)


def bytes_of_reading(config: ModelConfig) -> int:
    """About what autograd keeps of one candidate that reads one history."""
    attention = 6 * config.heads * config.window  # logits, bias, mask, softmax and their copies
    vectors = 10 * config.width + 4 * config.feed_forward_width
    head = 8 * config.width
    return _FLOAT_BYTES * (config.reader_layers * (attention + vectors) + head)


def give_back() -> None:
    """Return to the system what this process holds and does not use, where its C library can.

    Batches of ever other shapes leave gaps between what is kept: in sixty epochs of BERT4Rec on
    New York they had grown from 0.7 to 2 GB.
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
        most = int((cgroup / "memory.max").read_text())
        return max(0, most - int((cgroup / "memory.current").read_text()))
    except (OSError, ValueError):  # no container, or one without a limit
        return None
