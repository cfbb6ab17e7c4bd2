"""Attention weights of the visits of every prefix of a window, for additive attention.

    weight of visit j after visit t = w . sigmoid(query_t + key_j)      for j <= t, else 0

The sum inside the sigmoid has T x T x H entries for one window. They are computed for one t at a
time and only up to it, so that they stay in the processor's cache, and are computed again for the
gradient instead of being kept. Slots are the first axis, so that the slots up to t are contiguous.

Shapes: B windows, T slots, H size of a query and a key.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def prefix_weights(queries: Tensor, keys: Tensor, weight: Tensor) -> Tensor:
    """The weight of every visit after every visit. [B, T, H], [B, T, H], [1, H] -> [B, T, T]"""
    apply: Callable[..., Tensor] = _PrefixWeights.apply
    with torch.autocast(weight.device.type, enabled=False):  # bfloat16 sums are too inexact
        return apply(queries.to(weight.dtype), keys.to(weight.dtype), weight)


class _PrefixWeights(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, queries: Tensor, keys: Tensor, weight: Tensor) -> Tensor:
        queries, keys = _swapped(queries), _swapped(keys)  # [T, B, H]
        context.save_for_backward(queries, keys, weight)
        slots, windows, _ = keys.shape
        weights = keys.new_zeros(slots, slots, windows)  # [T, T, B]
        room = torch.empty_like(keys)
        for last in range(slots):
            match = _match(queries, keys, last, room)  # [last + 1, B, H]
            weights[last, : last + 1] = match @ weight[0]
        return weights.permute(2, 0, 1).contiguous()

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        queries, keys, weight = context.saved_tensors
        grad = grad.permute(1, 2, 0).contiguous()  # [T, T, B]
        of_queries, of_keys = torch.empty_like(queries), torch.zeros_like(keys)
        of_weight = torch.zeros_like(weight)
        room = torch.empty_like(keys)
        for last in range(len(keys)):
            match = _match(queries, keys, last, room)  # [last + 1, B, H]
            given = grad[last, : last + 1]  # [last + 1, B]
            of_weight.addmm_(given.reshape(1, -1), match.flatten(0, 1))  # [1, H]
            of_match = match.addcmul_(match, match, value=-1).mul_(given.unsqueeze(2))
            of_keys[: last + 1] += of_match
            torch.sum(of_match, dim=0, out=of_queries[last])  # [B, H]
        return _swapped(of_queries * weight[0]), _swapped(of_keys * weight[0]), of_weight


def _swapped(each: Tensor) -> Tensor:
    """[B, T, H] -> [T, B, H], or back"""
    return each.transpose(0, 1).contiguous()


def _match(queries: Tensor, keys: Tensor, last: int, room: Tensor) -> Tensor:
    """Match of each visit up to the last with the last, written to `room`. -> [last + 1, B, H]"""
    return torch.add(keys[: last + 1], queries[last], out=room[: last + 1]).sigmoid_()
