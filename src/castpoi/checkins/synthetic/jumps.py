"""How far people go, and which place they find there.

Jump lengths follow the truncated power law of González, Hidalgo and Barabási (2008),
p(r) ~ (r + r0)^-beta exp(-r / kappa). The end of a jump is a point of the plane; the place is
one of the block around it, the more attractive the likelier.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins.synthetic.config import SynthesisConfig

LONGEST_JUMP_KM: Final = 60.0
BLOCK_KM: Final = 0.5


class JumpLaw:
    """Lengths of jumps, drawn by inverting the distribution function."""

    def __init__(self, config: SynthesisConfig) -> None:
        self._length_km = np.concatenate([[0.0], np.geomspace(1e-3, LONGEST_JUMP_KM, 2_000)])
        density = (self._length_km + config.jump_offset_km) ** -config.jump_exponent
        density *= np.exp(-self._length_km / config.jump_cutoff_km)
        slices = (density[1:] + density[:-1]) / 2 * np.diff(self._length_km)
        self._reached = np.concatenate([[0.0], np.cumsum(slices)]) / slices.sum()

    def lengths_km(self, size: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.float64]:
        """Independent jump lengths."""
        lengths: NDArray[np.float64] = np.interp(rng.random(size), self._reached, self._length_km)
        return lengths

    def points(
        self, x_km: NDArray[np.float64], y_km: NDArray[np.float64], rng: np.random.Generator
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Where one jump from each point ends, in any direction."""
        length = self.lengths_km(x_km.shape, rng)
        angle = rng.random(x_km.shape) * (2 * np.pi)
        return x_km + length * np.cos(angle), y_km + length * np.sin(angle)


class Blocks:
    """Some places of the plane by square blocks, to find one near a point quickly."""

    def __init__(
        self,
        places: NDArray[np.int64],
        x_km: NDArray[np.float64],
        y_km: NDArray[np.float64],
        weight: NDArray[np.float64],
    ) -> None:
        self._west, self._south = x_km.min(), y_km.min()
        self._columns = int((x_km.max() - self._west) / BLOCK_KM) + 1
        self._rows = int((y_km.max() - self._south) / BLOCK_KM) + 1
        block = self._block_of(x_km, y_km)
        order = np.argsort(block, kind="stable")
        self._place = places[order]
        self._reached = np.concatenate([[0.0], np.cumsum(weight[order])])
        count = np.bincount(block, minlength=self._rows * self._columns)
        self._bounds = np.concatenate([[0], np.cumsum(count)])
        self._inhabited = self._nearest_inhabited(count)

    def near(
        self, x_km: NDArray[np.float64], y_km: NDArray[np.float64], rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """One place near each point: from its block, or from the next block that has any."""
        block = self._inhabited[self._block_of(x_km, y_km)]
        first, end = self._bounds[block], self._bounds[block + 1]
        low, high = self._reached[first], self._reached[end]
        drawn = np.searchsorted(self._reached, low + rng.random(x_km.shape) * (high - low), "right")
        found: NDArray[np.int64] = self._place[np.clip(drawn - 1, first, end - 1)]
        return found

    def holds(self, x_km: NDArray[np.float64], y_km: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whether each point lies inside the rectangle of the blocks."""
        column, row = self._column_and_row(x_km, y_km)
        return (column >= 0) & (column < self._columns) & (row >= 0) & (row < self._rows)

    def _column_and_row(
        self, x_km: NDArray[np.float64], y_km: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        column = np.floor((x_km - self._west) / BLOCK_KM).astype(np.int64)
        row = np.floor((y_km - self._south) / BLOCK_KM).astype(np.int64)
        return column, row

    def _block_of(self, x_km: NDArray[np.float64], y_km: NDArray[np.float64]) -> NDArray[np.int64]:
        column, row = self._column_and_row(x_km, y_km)
        blocks_south = np.clip(row, 0, self._rows - 1) * self._columns
        block: NDArray[np.int64] = blocks_south + np.clip(column, 0, self._columns - 1)
        return block

    def _nearest_inhabited(self, count: NDArray[np.int64]) -> NDArray[np.int64]:
        """For each block the nearest one that has a place: known blocks tell their neighbours."""
        known = np.where(count > 0, np.arange(len(count)), -1).reshape(self._rows, self._columns)
        while (known < 0).any():
            told = np.pad(known, 1, constant_values=-1)
            for neighbour in (told[:-2, 1:-1], told[2:, 1:-1], told[1:-1, :-2], told[1:-1, 2:]):
                known = np.where(known < 0, neighbour, known)
        return known.ravel()
