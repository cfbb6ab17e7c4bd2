"""Weights of the visits of every prefix of a window, where each visit is weighed by a sum.

    weight of visit j after visit t = w . sigmoid(query_t + key_j)      for j <= t, else 0

The sum inside the sigmoid has T x T x H entries for one window. They are made for one t at a time
and only up to it, so that they stay in the processor's cache, and are made again for the gradient
instead of being kept. Slots stand before windows: what is up to t then lies in one piece.

Shapes: B windows, T slots, H size of a query and a key.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def prefix_weights(queries: Tensor, keys: Tensor, weigh: Tensor) -> Tensor:
    """The weight of every visit after every visit. [B, T, H], [B, T, H], [1, H] -> [B, T, T]"""
    apply: Callable[..., Tensor] = _PrefixWeights.apply
    with torch.autocast(weigh.device.type, enabled=False):  # half numbers lose too much of a sum
        return apply(queries.to(weigh.dtype), keys.to(weigh.dtype), weigh)


class _PrefixWeights(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, queries: Tensor, keys: Tensor, weigh: Tensor) -> Tensor:
        queries, keys = _swapped(queries), _swapped(keys)  # [T, B, H]
        context.save_for_backward(queries, keys, weigh)
        slots, windows, _ = keys.shape
        weights = keys.new_zeros(slots, slots, windows)  # [T, T, B]
        room = torch.empty_like(keys)
        for last in range(slots):
            match = _match(queries, keys, last, room)  # [last + 1, B, H]
            weights[last, : last + 1] = match @ weigh[0]
        return weights.permute(2, 0, 1).contiguous()

    @staticmethod
    @once_differentiable
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        queries, keys, weigh = context.saved_tensors
        gradient = gradient.permute(1, 2, 0).contiguous()  # [T, T, B]
        of_queries, of_keys = torch.empty_like(queries), torch.zeros_like(keys)
        of_weigh = torch.zeros_like(weigh)
        room = torch.empty_like(keys)
        for last in range(len(keys)):
            match = _match(queries, keys, last, room)  # [last + 1, B, H]
            given = gradient[last, : last + 1]  # [last + 1, B]
            of_weigh.addmm_(given.reshape(1, -1), match.flatten(0, 1))  # [1, H]
            slope = match.addcmul_(match, match, value=-1).mul_(given.unsqueeze(2))
            of_keys[: last + 1] += slope
            torch.sum(slope, dim=0, out=of_queries[last])  # [B, H]
        return _swapped(of_queries * weigh[0]), _swapped(of_keys * weigh[0]), of_weigh


def _swapped(each: Tensor) -> Tensor:
    """Slots before windows, or windows before slots again. [B, T, H] -> [T, B, H]"""
    return each.transpose(0, 1).contiguous()


def _match(queries: Tensor, keys: Tensor, last: int, room: Tensor) -> Tensor:
    """How each visit up to the last meets the last, written into `room`. -> [last + 1, B, H]"""
    return torch.add(keys[: last + 1], queries[last], out=room[: last + 1]).sigmoid_()
