"""Weights of the visits of every prefix of a window, where each visit is weighed by a sum.

    weight of visit j after visit t = w . sigmoid(query_t + key_j)      for j <= t, else 0

The sum inside the sigmoid has T x T x H entries for one window. They are made for one t at a time
and only up to it, so that they stay in the processor's cache, and are made again for the gradient
instead of being kept.

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
        context.save_for_backward(queries, keys, weigh)
        slots = queries.shape[1]
        weights = queries.new_zeros(len(queries), slots, slots)  # [B, T, T]
        for last in range(slots):
            match = _match(queries, keys, last)  # [B, last + 1, H]
            weights[:, last, : last + 1] = match @ weigh[0]
        return weights

    @staticmethod
    @once_differentiable
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        queries, keys, weigh = context.saved_tensors
        of_queries, of_keys = torch.empty_like(queries), torch.zeros_like(keys)
        of_weigh = torch.zeros_like(weigh)
        for last in range(queries.shape[1]):
            match = _match(queries, keys, last)  # [B, last + 1, H]
            given = gradient[:, last, : last + 1]  # [B, last + 1]
            of_weigh += given.reshape(1, -1) @ match.flatten(0, 1)  # [1, H]
            slope = torch.addcmul(match, match, match, value=-1).mul_(given.unsqueeze(2))
            of_keys[:, : last + 1] += slope
            torch.sum(slope, dim=1, out=of_queries[:, last])  # [B, H]
        return of_queries * weigh[0], of_keys * weigh[0], of_weigh


def _match(queries: Tensor, keys: Tensor, last: int) -> Tensor:
    """How each visit up to the last meets the last. -> [B, last + 1, H]"""
    return (keys[:, : last + 1] + queries[:, last : last + 1]).sigmoid_()
