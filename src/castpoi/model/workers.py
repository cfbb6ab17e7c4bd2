"""Independent pieces of work, one a core, each core for itself.

Many small tensor operations, each split over all cores, make the cores wait for each other after
every one; where another program takes a core, they wait long (scoring was seen to take twenty
times as long). Here each piece of work keeps to one core and nobody waits before the end.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import torch

ForEach = Callable[[Callable[[int], None], int], None]
"""Calls a piece of work with each number below a count."""


@contextmanager
def workers(device: torch.device) -> Iterator[ForEach]:
    """As many workers as torch has threads; on another device than the CPU, no more than one."""
    threads = torch.get_num_threads() if device.type == "cpu" else 1
    if threads == 1:
        yield _one_by_one
        return
    with ThreadPoolExecutor(threads, initializer=_keep_to_one_core) as pool:
        try:
            yield lambda work, count: _spread(pool, work, count)
        finally:
            # a thread's own limit is also noted as the limit of threads yet to be born
            torch.set_num_threads(threads)


@contextmanager
def cores_for(histories: int) -> Iterator[None]:
    """All cores for many histories; for a lonely one, whose work is too small to share, this one.

    To wake another core for each of a hundred small operations takes longer than doing them.
    """
    threads = torch.get_num_threads()
    if histories > 1 or threads == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _one_by_one(work: Callable[[int], None], count: int) -> None:
    for number in range(count):
        work(number)


def _spread(pool: ThreadPoolExecutor, work: Callable[[int], None], count: int) -> None:
    def without_gradients(number: int) -> None:
        with torch.inference_mode():  # holds for the thread that says it
            work(number)

    for _ in pool.map(without_gradients, range(count)):
        pass


def _keep_to_one_core() -> None:
    torch.set_num_threads(1)
