"""Memory: what is free, how much may be computed at once within it, and giving it back.

Numbers of candidates and targets are rounded down to a power of two and have a ceiling. Ordinary
machines reach that of candidates, and hold all targets of a step of the presets, so that two of
them cut a step into the same parts and their runs agree to the last bit.
"""

import ctypes
import os
from pathlib import Path
from typing import Final

import torch

from castpoi.model.config import ModelConfig

MOST_CANDIDATES: Final = 32
"""Larger parts were not quicker on a CPU: what is written should be read again from its cache."""

MOST_TARGETS: Final = 4096
"""More than any step of the fast objective has, unless it is told to be large."""

_UNKNOWN_FREE_BYTES: Final = 2 * 2**30  # where the system does not say
_SHARE: Final = 0.25  # of what is free; the rest is for gradients, the optimizer and others
_FLOAT_BYTES: Final = 4
_MATRICES: Final = 12  # of targets x places that a step of the fast objective holds, about


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


def candidates_at_once(config: ModelConfig, *, histories: int, free: int) -> int:
    """How many candidates may be read for so many histories, a power of two and at least 1."""
    fitting = int(free * _SHARE) // (histories * bytes_of_reading(config))
    return _power_of_two(fitting, most=MOST_CANDIDATES)


def targets_at_once(config: ModelConfig, *, places: int, candidates: int, free: int) -> int:
    """How many targets the fast objective may learn from at once, a power of two and at least 1.

    Each is scored against all places, and the reader, if there is one, reads it for so many.
    """
    fitting = int(free * _SHARE) // bytes_of_target(config, places=places, candidates=candidates)
    return _power_of_two(fitting, most=MOST_TARGETS)


def bytes_of_target(config: ModelConfig, *, places: int, candidates: int) -> int:
    """About what a step of the fast objective holds for one target, the backbone aside."""
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


def _power_of_two(fitting: int, *, most: int) -> int:
    """The largest that is no more than what fits, nor than the most."""
    return 1 << (max(1, min(fitting, most)).bit_length() - 1)


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
