"""The known places of training positions, in blocks that are kept while there is memory.

A position whose window has a few hundred places has that many pairs, of a hundred bytes each: all
pairs of one user's million visits would take tens of gigabytes. So the pairs of a block, 64
positions of one user, are computed when a batch needs them. Blocks are kept until they fill
`KEPT_BYTES`, enough for ordinary cities; later ones are computed again whenever they are needed.
That changes the time of an epoch, but no feature. Threads may share the blocks: two threads that
compute the same block get equal features.

Shapes: R positions.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins.trajectory import Histories
from castpoi.model.config import REVISIT_WINDOW
from castpoi.model.features.known import POSITIONS_AT_ONCE, KnownPairs, PairCounter
from castpoi.training.device import release_memory

KEPT_BYTES: Final = 3 * 2**29
"""Memory for the pairs of all blocks that are kept."""

_GIVE_BACK_BYTES: Final = 2**27  # arrays of many sizes leave gaps between them, gigabytes of them


class KnownBlocks:
    """The known places of any positions of some histories."""

    def __init__(
        self,
        histories: Histories,
        points: NDArray[np.float64] | None = None,
        *,
        window: int = REVISIT_WINDOW,
        kept_bytes: int = KEPT_BYTES,
    ) -> None:
        """With habits if `points` are given: all places of the city on the unit sphere. [P, 3]"""
        self.counter = PairCounter(histories, points, window=window)
        self.user_end = np.repeat(histories.bounds[1:], histories.lengths)  # [N]
        self.free_bytes = kept_bytes
        self.kept: dict[int, KnownPairs] = {}  # by the first position of the block
        self._computed_bytes = 0  # since memory was last given back

    def of(self, position: NDArray[np.int64]) -> KnownPairs:
        """The known places of some positions; fastest if neighbours are adjacent. [R]"""
        begin = self.counter.begin[position]
        block = begin + (position - begin) // POSITIONS_AT_ONCE * POSITIONS_AT_ONCE
        is_edge = (np.diff(position, prepend=-2) != 1) | (np.diff(block, prepend=-1) != 0)
        edges = np.flatnonzero(is_edge)
        parts = [
            self._block(first).part(start - first, start - first + length)
            for first, start, length in zip(
                block[edges].tolist(),
                position[edges].tolist(),
                np.diff(edges, append=len(position)).tolist(),
                strict=True,
            )
        ]
        lengths = np.concatenate([np.diff(part.bounds) for part in parts])
        return KnownPairs(
            bounds=np.r_[0, np.cumsum(lengths)],
            place=np.concatenate([part.place for part in parts]),
            features=np.concatenate([part.features for part in parts]),
            home=np.concatenate([part.home for part in parts]),
        )

    def _block(self, first: int) -> KnownPairs:
        """A block, kept if there is memory."""
        if first in self.kept:
            return self.kept[first]
        end = min(first + POSITIONS_AT_ONCE, int(self.user_end[first]))
        block = self.counter.pairs(np.array([first]), np.array([end]))
        self._computed_bytes += block.size_bytes
        if self._computed_bytes > _GIVE_BACK_BYTES:
            release_memory()
            self._computed_bytes = 0
        if block.size_bytes <= self.free_bytes:
            self.free_bytes -= block.size_bytes
            self.kept[first] = block
        return block
