"""Devices: by name, their free memory, and deterministic arithmetic on a number of cores."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Final

import numpy as np
import torch

from castpoi.core.errors import BadInput
from castpoi.training.job import World

_CPU: Final = torch.device("cpu")
_UNKNOWN_FREE_BYTES: Final = 2 * 2**30  # where the system does not report it


def device_named(name: str) -> torch.device:
    """A device of this machine: cpu, cuda (of several, that of this process), or mps."""
    mps = bool(torch.backends.mps.is_available())
    found = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": mps}
    if not found.get(name, False):
        here = " or ".join(each for each, is_here in found.items() if is_here)
        raise BadInput(f"device '{name}' is not on this machine; choose {here}")
    if name == "cuda":
        return torch.device(name, World.from_environment().local_rank)
    return torch.device(name)


def mixed_precision(device: torch.device) -> AbstractContextManager[object]:
    """bfloat16 on CUDA; float32 elsewhere, where bfloat16 is not faster."""
    if device.type != "cuda":
        return nullcontext()
    return torch.autocast("cuda", dtype=torch.bfloat16)


@contextmanager
def deterministic(device: torch.device, *, threads: int) -> Iterator[None]:
    """Use this many cores, a fixed order of sums and no denormal numbers while the block runs.

    Without the fixed order two runs of one seed differ: on several cores torch adds gradients of
    shared rows in the order in which they arrive. The order has no measurable cost. Denormal
    numbers, below 1e-38, are flushed to zero: decaying weights end there, and processors are up to
    a hundred times slower with them (an epoch of Caser six times, after thirty epochs). The flag
    is set for the calling thread and inherited by threads that start in the block; threads that
    torch had started before keep denormal numbers.
    """
    before = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    filling = torch.utils.deterministic.fill_uninitialized_memory  # type: ignore[attr-defined]
    kept_denormals = bool(torch.tensor(1e-40) * 1.0 != 0)
    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)
    if device.type == "cpu":
        torch.use_deterministic_algorithms(True)
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    try:
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            yield
    finally:
        torch.set_num_threads(before[0])
        torch.set_flush_denormal(not kept_denormals)
        torch.use_deterministic_algorithms(before[1])
        torch.utils.deterministic.fill_uninitialized_memory = filling  # type: ignore[attr-defined]


def seed_epoch(seed: int, epoch: int, rank: int = 0) -> None:
    """Seed torch for an epoch, independent of earlier random numbers."""
    state = np.random.SeedSequence((seed, epoch, rank)).generate_state(1, np.uint64)
    torch.manual_seed(int(state[0] >> np.uint64(1)))


def free_bytes(
    device: torch.device = _CPU,
    *,
    meminfo: Path = Path("/proc/meminfo"),
    cgroup: Path = Path("/sys/fs/cgroup"),
) -> int:
    """Free memory of a CUDA card, else of the machine and of the container around the process.

    Apple's processors (mps) share the memory of the machine. Systems other than Linux do not
    report it; a low guess is returned there.
    """
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    found = []
    try:
        lines = meminfo.read_text().splitlines()
        free = next(line for line in lines if line.startswith("MemAvailable:"))
        found.append(int(free.split()[1]) * 1024)
    except (OSError, StopIteration, ValueError, IndexError):  # another system
        pass
    try:
        limit = int((cgroup / "memory.max").read_text())
        found.append(max(0, limit - int((cgroup / "memory.current").read_text())))
    except (OSError, ValueError):  # no container, or one without a limit
        pass
    return min(found, default=_UNKNOWN_FREE_BYTES)


def release_memory() -> None:
    """Return memory that this process holds and does not use, if its C library can.

    Batches of different shapes fragment the heap: in sixty epochs of BERT4Rec on New York it grew
    from 0.7 to 2 GB.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    if trim is not None:
        trim(0)
