"""Passes loaded runs to another process through a pipe.

The process that loads a run uses polars, whose threads do not survive a fork; so the process that
forks the workers receives the run from it. Tables stay behind: nothing of a service needs them once
the run is loaded, and unpickling one could start the threads of polars.
"""

import pickle
from collections.abc import Mapping
from typing import Any, BinaryIO, Final

import polars as pl
import torch
from numpy.typing import NDArray

from castpoi.recommend.recommender import Recommender

_PROTOCOL: Final = 5  # arrays are written without a copy

Recommenders = Mapping[str, Recommender]
"""The recommenders of a service by the name of their run."""


def send_recommenders(recommenders: Recommenders, pipe: BinaryIO) -> None:
    """Write recommenders to a pipe; their users cannot be asked for afterwards."""
    for each in recommenders.values():
        each.users = None  # a service has the visits of all users in its store
    _Pickler(pipe).dump(dict(recommenders))


def receive_recommenders(pipe: BinaryIO) -> Recommenders | None:
    """The recommenders that another process of ours has sent; None if it ended before."""
    try:
        received: Recommenders = pickle.load(pipe)
    except (EOFError, pickle.UnpicklingError):
        return None
    return received


class _Pickler(pickle.Pickler):
    """Pickles tensors that share memory so that they share it again, and no table."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file, protocol=_PROTOCOL)
        self._memory: dict[int, NDArray[Any]] = {}  # of tensors, by its address

    def reducer_override(self, obj: Any) -> Any:
        """How an object is rebuilt."""
        if isinstance(obj, pl.DataFrame):
            return pl.DataFrame, ()
        if isinstance(obj, torch.nn.Parameter):
            return torch.nn.Parameter, (obj.detach(), False)
        if isinstance(obj, torch.Tensor):
            storage = obj.untyped_storage()
            if storage.data_ptr() not in self._memory:
                whole = torch.empty(0, dtype=obj.dtype).set_(storage)
                self._memory[storage.data_ptr()] = whole.numpy()
            memory = self._memory[storage.data_ptr()]
            return _tensor, (memory, obj.shape, obj.stride(), obj.storage_offset())
        return NotImplemented


def _tensor(
    memory: NDArray[Any], shape: tuple[int, ...], stride: tuple[int, ...], offset: int
) -> torch.Tensor:
    return torch.from_numpy(memory).as_strided(tuple(shape), stride, offset)
