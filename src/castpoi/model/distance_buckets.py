"""In which distance bucket two places lie, without trigonometry where it counts.

Places are points on the unit sphere. The squared chord between two points grows with their
great-circle distance, so the edges are turned into squared chords once and each pair costs three
multiplications. Up to a limit of places all pairs are kept in a table of one byte each.

Shapes: P places, V visits, C candidates, B histories, T slots.
"""

from functools import reduce
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from castpoi.geo.distance import EARTH_RADIUS_KM
from castpoi.model.precision import has_float64

TABLE_LIMIT: Final = 20_000
"""Most places for which all pairs are kept; 400 MB at the limit."""

_BLOCK: Final = 512


class DistanceBuckets(nn.Module):
    """The distance bucket of any visit and candidate of a city, given as rows of the table."""

    vectors: Tensor
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
        vectors = torch.cat([torch.zeros(1, 3).double(), unit_vectors(lat, lon)])
        edges = squared_chords(edges_km)
        self.has_table = self.places <= table_limit
        if self.has_table:
            blocks = [_buckets(block, vectors, edges) for block in torch.split(vectors, _BLOCK)]
            self.register_buffer("table", torch.cat(blocks), persistent=False)
        else:
            # no buffers, which would follow the model to devices that have no float64
            self.vectors, self.edges = vectors, edges

    def forward(self, visited: Tensor, candidates: Tensor) -> Tensor:
        """Buckets of every history's visits and candidates. [B, T], [B, C] -> [B, C, T] bytes"""
        if self.has_table:
            pairs = candidates.unsqueeze(2) * len(self.table) + visited.unsqueeze(1)  # [B, C, T]
            return self.table.view(-1).index_select(0, pairs.flatten()).view(pairs.shape)
        return self._computed(candidates, visited)

    def nearest(self, visited: Tensor) -> Tensor:
        """Bucket of every place by its nearest of some visits. [B, T] rows -> [B, P] bytes"""
        known, number = visited.unique(return_inverse=True)  # [V], [B, T]
        buckets = self.to_every(known)  # [V, P]
        by_slot = (buckets.index_select(0, slot) for slot in number.unbind(dim=1))  # [B, P] each
        return reduce(torch.minimum, by_slot)

    def to_every(self, visited: Tensor) -> Tensor:
        """Buckets of visits with every place. [V] -> [V, P] bytes"""
        if self.has_table:
            return self.table.index_select(0, visited)[:, 1:]
        known, number = visited.unique(return_inverse=True)  # a few visits to many places
        every_row = torch.arange(1, self.places + 1, device=visited.device)
        return self._computed(known, every_row)[number]

    def between(self, visited: Tensor, candidates: Tensor) -> Tensor:
        """Buckets of all visits with all candidates. [V], [C] -> [V, C] bytes"""
        if self.has_table:
            return self.table.index_select(0, visited)[:, candidates]
        return self._computed(visited, candidates)

    def _computed(self, left: Tensor, right: Tensor) -> Tensor:
        """Buckets of all pairs of rows without the table. [..., V], [..., C] -> [..., V, C] bytes

        In float64, since near places have nearly the same vectors; where the device of the rows
        has none, on the CPU.
        """
        home = left.device if has_float64(left.device) else torch.device("cpu")
        self.vectors, self.edges = self.vectors.to(home), self.edges.to(home)
        buckets = _buckets(self.vectors[left.to(home)], self.vectors[right.to(home)], self.edges)
        return buckets.to(left.device)


def unit_vectors(lat: NDArray[np.float64], lon: NDArray[np.float64]) -> Tensor:
    """Points on the unit sphere from degrees. [P], [P] -> [P, 3]"""
    phi, theta = np.radians(lat), np.radians(lon)
    axes = [np.cos(phi) * np.cos(theta), np.cos(phi) * np.sin(theta), np.sin(phi)]
    return torch.from_numpy(np.stack(axes, axis=-1).astype(np.float64))


def squared_chords(distances_km: tuple[float, ...]) -> Tensor:
    """Squared straight-line distance on the unit sphere of great-circle distances."""
    half_angles = np.asarray(distances_km, dtype=np.float64) / (2 * EARTH_RADIUS_KM)
    return torch.from_numpy(4 * np.sin(half_angles) ** 2)


def _buckets(left: Tensor, right: Tensor, edges: Tensor) -> Tensor:
    """Buckets of all pairs of points. [..., V, 3], [..., C, 3] -> [..., V, C] bytes"""
    squared_chord = 2 - 2 * (left @ right.mT)
    bucket = torch.zeros(squared_chord.shape, dtype=torch.uint8, device=left.device)
    for edge in edges:
        bucket += squared_chord >= edge  # an edge belongs to the bucket above
    return bucket
