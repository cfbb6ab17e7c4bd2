"""Parts that several models share: layers, small tables, tensors on a device, filling weights.

Shapes: ... any, D width, F inner width, W weights of a gate.
"""

import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any, Final, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

SMALL_TABLE_STD: Final = 0.02
"""Spread of small learned tables at the start."""

_LEVELS: Final = 256
_GATE_INNER_WIDTH: Final = 32
_GATE_STD: Final = 0.01


@dataclass(frozen=True, kw_only=True)
class Tensors:
    """A dataclass whose fields are tensors, other such dataclasses, or anything else."""

    def map(self, change: Callable[[Any], Any]) -> Self:
        """The same with every tensor, and every such dataclass, changed."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        is_changed = {name for name, each in values.items() if isinstance(each, Tensor | Tensors)}
        return replace(self, **{name: change(values[name]) for name in is_changed})

    def to(self, device: torch.device) -> Self:
        """The same on another device."""
        return self.map(lambda each: each.to(device))


_OF_THREAD: Final = threading.local()


def dropout_generator() -> torch.Generator | None:
    """The generator of this thread; without one torch draws from its own, of all threads."""
    return getattr(_OF_THREAD, "generator", None)


@contextmanager
def dropout_seed(seed: tuple[int, ...]) -> Iterator[None]:
    """While the block runs, dropout on the CPU in this thread depends on this seed alone."""
    state = np.random.SeedSequence(seed).generate_state(1, np.uint64)
    _OF_THREAD.generator = torch.Generator().manual_seed(int(state[0] >> np.uint64(1)))
    try:
        yield
    finally:
        _OF_THREAD.generator = None


class Dropout(nn.Module):
    """Dropout at a fraction of the usual cost on a CPU.

    Drawing random numbers one by one costs more than the products around it. Here one random number
    of 64 bits decides about eight values, so the rate is rounded to the nearest 256th.
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.dropped = min(round(rate * _LEVELS), _LEVELS - 1)  # of 256

    def forward(self, x: Tensor) -> Tensor:
        """In training, set values to zero at random and scale the others up. [...] -> [...]"""
        if not self.training or not self.dropped:
            return x
        if x.device.type != "cpu":
            return nn.functional.dropout(x, self.dropped / _LEVELS)
        draws = torch.empty(-(-x.numel() // 8), dtype=torch.int64).random_(
            -(2**63), None, generator=dropout_generator()
        )
        level = draws.view(torch.uint8)[: x.numel()].view(x.shape)  # uniform over 0..255
        # bytes to 0 or 1 by a clamp: multiplying by booleans is slow in torch
        is_kept = level.clamp_(self.dropped - 1, self.dropped).sub_(self.dropped - 1)
        return x * (is_kept * (_LEVELS / (_LEVELS - self.dropped)))


class FeedForward(nn.Module):
    """x + W2 ReLU(W1 x), for each vector separately."""

    def __init__(self, *, width: int, inner_width: int, dropout: float) -> None:
        super().__init__()
        self.widen = nn.Linear(width, inner_width)
        self.narrow = nn.Linear(inner_width, width)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Add to each vector a function of itself. [..., D] -> [..., D]"""
        inner = self.dropout(self.widen(x).relu())  # [..., F]
        return x + self.narrow(inner)  # [..., D]


def gate_layers(*, width: int, weights: int) -> nn.Sequential:
    """Two layers from a state to the weights of a gate, which start near zero. D -> W"""
    last = nn.Linear(_GATE_INNER_WIDTH, weights)
    nn.init.normal_(last.weight, std=_GATE_STD)
    nn.init.zeros_(last.bias)
    return nn.Sequential(nn.Linear(width, _GATE_INNER_WIDTH), nn.ReLU(), last)


def small_table(rows: int, width: int) -> nn.Embedding:
    """A learned table that starts near zero. [rows, width]"""
    table = nn.Embedding(rows, width)
    nn.init.normal_(table.weight, std=SMALL_TABLE_STD)
    return table


def has_float64(device: torch.device) -> bool:
    """Whether a device computes in float64: all that castpoi supports but Apple's (mps)."""
    return device.type != "mps"


@torch.no_grad()
def fill(
    weights: Mapping[str, Tensor],
    arrays: Mapping[str, NDArray[Any]],
    *,
    besides: Collection[str] = (),
) -> None:
    """Copy each array into the weight of its name; arrays named in `besides` are no weights.

    Raises:
        ValueError: an array has no weight, a weight no array, or their shapes differ.
    """
    unknown = sorted(arrays.keys() - weights.keys() - set(besides))
    if unknown:
        raise ValueError(f"the model has no weight {', '.join(unknown)}")
    missing = sorted(weights.keys() - arrays.keys())
    if missing:
        raise ValueError(f"it lacks {', '.join(missing)}; is it of an earlier castpoi?")
    for name, weight in weights.items():
        array = arrays[name]
        if weight.shape != array.shape:
            raise ValueError(f"weight {name} has shape {array.shape}, not {tuple(weight.shape)}")
        weight.copy_(torch.tensor(array))
