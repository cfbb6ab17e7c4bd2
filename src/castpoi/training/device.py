"""Where tensors live, and how many cores and how much order their arithmetic gets."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import numpy as np
import torch

from castpoi.core.errors import BadInput
from castpoi.training.world import World


def device_named(name: str) -> torch.device:
    """A device of this machine: cpu, cuda (of several, this process's own), or mps."""
    found = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": _has_mps()}
    if not found.get(name, False):
        here = " or ".join(each for each, is_here in found.items() if is_here)
        raise BadInput(f"device '{name}' is not on this machine; choose {here}")
    if name == "cuda":
        return torch.device(name, World.from_environment().local_rank)
    return torch.device(name)


def mixed_precision(device: torch.device) -> AbstractContextManager[object]:
    """bfloat16 where it helps: on CUDA. Elsewhere all is float32."""
    if device.type != "cuda":
        return nullcontext()
    return torch.autocast("cuda", dtype=torch.bfloat16)


@contextmanager
def orderly(device: torch.device, *, threads: int) -> Iterator[None]:
    """So many cores, sums in one fixed order, no denormal numbers; as before at the end.

    The order costs nothing worth measuring, and without it two runs of one seed differ: on
    several cores torch adds slopes of shared rows in the order in which they happen to arrive.
    Numbers below 1e-38 are taken for zero: weights that fade away would end as such, which cost a
    processor up to a hundred times as much (six times an epoch of Caser, after some thirty). Torch
    tells this to the calling thread, and threads inherit it when they start: helpers that torch
    had started before keep such numbers, and those that start here go on without them.
    """
    before = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    filling = torch.utils.deterministic.fill_uninitialized_memory  # type: ignore[attr-defined]
    kept_denormals = _keeps_denormals()
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


def _keeps_denormals() -> bool:
    """Whether numbers below 1e-38 are told from zero now."""
    return bool(torch.tensor(1e-40) * 1.0 != 0)


def seed_epoch(seed: int, epoch: int, rank: int = 0) -> None:
    """Fix all that torch draws in an epoch, whatever was drawn before it."""
    state = np.random.SeedSequence((seed, epoch, rank)).generate_state(1, np.uint64)
    torch.manual_seed(int(state[0] >> np.uint64(1)))


def _has_mps() -> bool:
    return bool(torch.backends.mps.is_available())
