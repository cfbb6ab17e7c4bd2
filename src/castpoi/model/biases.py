"""Two biases in the reader's attention: how old a visit is, how far it is from the candidate.

Each is one learned scalar a bucket, shared by heads and layers: the same family of functions as
the paper's embedding of a bucket projected to a scalar. From zero, training is as likely to learn
to look at far visits as at near ones, since the head can turn either into the same advice; the
bias of distance may therefore start with a slope (`ModelConfig.spatial_start`).

Shapes: any, a bias for every age or bucket; the reader asks for [B, T] and [B, C, T] of B
histories, T slots and C candidates.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from castpoi.checkins.record import HOUR_US
from castpoi.model.precision import widest_float


class TemporalBias(nn.Module):
    """One scalar a bucket of a visit's age; the same for every candidate."""

    edges_us: Tensor

    def __init__(self, *, edges_hours: tuple[float, ...]) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(len(edges_hours) + 1))
        edges = torch.tensor([round(hours * HOUR_US) for hours in edges_hours])
        self.register_buffer("edges_us", edges, persistent=False)

    def forward(self, age_us: Tensor) -> Tensor:
        """The bias of visits of this age; an edge belongs to the bucket above. [...] -> [...]"""
        # whole microseconds, so that no rounding moves a visit over an edge
        return self.weight[torch.bucketize(age_us.contiguous(), self.edges_us, right=True)]


class SpatialBias(nn.Module):
    """One scalar a bucket of the distance between a visit and a candidate."""

    def __init__(self, *, edges_km: tuple[float, ...], nearest: float = 0.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(nearest, -nearest, len(edges_km) + 1))

    def forward(self, bucket: Tensor) -> Tensor:
        """The bias of pairs in these buckets. [...] -> [...]"""
        look_up: Callable[[Tensor, Tensor], Tensor] = _LookUp.apply
        return look_up(self.weight, bucket)


class _LookUp(torch.autograd.Function):
    """weight[bucket] with a gradient that is summed in one pass."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, bucket: Tensor) -> Tensor:
        ctx.save_for_backward(bucket)
        ctx.buckets = len(weight)
        return weight.index_select(0, bucket.reshape(-1).int()).view(bucket.shape)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, None]:
        (slope,) = slopes
        (bucket,) = ctx.saved_tensors
        # one by one, so in numbers that millions of small summands do not round away
        summands = slope.flatten().to(widest_float(slope.device))
        exact = torch.bincount(bucket.flatten(), summands, minlength=ctx.buckets)
        return exact.to(slope.dtype), None
