"""The distance bucket of two places, without trigonometry for each pair.

Places are points on the unit sphere. The squared chord between two points grows with their
great-circle distance, so the edges are converted to squared chords once and each pair costs three
multiplications. Up to a limit of places the buckets of all pairs are kept in a table, one byte
each.

Shapes: P places, V visits, C candidates, B histories, T slots.
"""

from functools import reduce
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from castpoi.geo.distance import EARTH_RADIUS_KM, unit_vectors
from castpoi.model.layers import has_float64

TABLE_LIMIT: Final = 20_000
"""Number of places up to which the buckets of all pairs are kept; 400 MB at the limit."""

_BLOCK: Final = 512


class DistanceBuckets(nn.Module):
    """The distance bucket of any visited place and candidate of a city.

    A visited place may be NO_PLACE (an empty slot); it has the buckets of place 0.
    """

    points: Tensor
    table: Tensor
    edges: Tensor

    def __init__(
        self,
        *,
        lat: NDArray[np.float64],
        lon: NDArray[np.float64],
        edges_km: tuple[float, ...],
        table_limit: int = TABLE_LIMIT,
    ) -> None:
        super().__init__()
        self.places = len(lat)
        points = torch.from_numpy(unit_vectors(lat, lon))  # [P, 3]
        edges = torch.from_numpy(squared_chords(edges_km))
        self.has_table = self.places <= table_limit
        if self.has_table:
            blocks = [_buckets(block, points, edges) for block in torch.split(points, _BLOCK)]
            self.register_buffer("table", torch.cat(blocks), persistent=False)  # [P, P]
        else:
            # no buffers, which would follow the model to devices that have no float64
            self.points, self.edges = points, edges

    def forward(self, visited: Tensor, candidates: Tensor) -> Tensor:
        """Buckets of the visits and candidates of each history. [B, T], [B, C] -> [B, C, T]"""
        visited = visited.clamp(min=0)
        if self.has_table:
            pairs = candidates.unsqueeze(2) * self.places + visited.unsqueeze(1)  # [B, C, T]
            return self.table.view(-1).index_select(0, pairs.flatten()).view(pairs.shape)
        return self._computed(candidates, visited)

    def nearest(self, visited: Tensor) -> Tensor:
        """Bucket of every place by its nearest visit. [B, T] -> [B, P]"""
        distinct, number = visited.unique(return_inverse=True)  # [V], [B, T]
        buckets = self.between(distinct)  # [V, P]
        by_slot = (buckets.index_select(0, slot) for slot in number.unbind(dim=1))  # [B, P] each
        return reduce(torch.minimum, by_slot)

    def between(self, visited: Tensor, candidates: Tensor | None = None) -> Tensor:
        """Buckets of all visits and all candidates, or all places. [V], [C] -> [V, C] or [V, P]"""
        visited = visited.clamp(min=0)
        if self.has_table:
            buckets = self.table.index_select(0, visited)
            return buckets if candidates is None else buckets[:, candidates]
        distinct, number = visited.unique(return_inverse=True)  # few visits, many places
        every = torch.arange(self.places, device=visited.device)
        return self._computed(distinct, every if candidates is None else candidates)[number]

    def _computed(self, left: Tensor, right: Tensor) -> Tensor:
        """Buckets of all pairs without the table. [..., V], [..., C] -> [..., V, C]

        In float64, since near places have nearly the same vectors; on the CPU, if the device of the
        places has no float64.
        """
        home = left.device if has_float64(left.device) else torch.device("cpu")
        self.points, self.edges = self.points.to(home), self.edges.to(home)
        return _buckets(self.points[left.to(home)], self.points[right.to(home)], self.edges).to(
            left.device
        )


def squared_chords(km: tuple[float, ...]) -> NDArray[np.float64]:
    """Squared chords on the unit sphere of great-circle distances."""
    half_angles = np.asarray(km, dtype=np.float64) / (2 * EARTH_RADIUS_KM)
    return np.asarray(4 * np.sin(half_angles) ** 2)


def _buckets(left: Tensor, right: Tensor, edges: Tensor) -> Tensor:
    """Buckets of all pairs of points. [..., V, 3], [..., C, 3] -> [..., V, C] bytes"""
    squared_chord = 2 - 2 * (left @ right.mT)
    bucket = torch.zeros(squared_chord.shape, dtype=torch.uint8, device=left.device)
    for edge in edges:
        bucket += squared_chord >= edge  # an edge belongs to the bucket above
    return bucket
