"""Which places each person knows, in one table of fixed size.

A pair (person, place) marks one byte, found by hashing. A known place is always recognised; a
place never seen is taken for a known one in a few of a hundred cases, and is then passed over.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

_ROOM_PER_PAIR: Final = 16
_STIR_PERSON: Final = np.array([0x9E3779B97F4A7C15], dtype=np.uint64)
_STIR_PLACE: Final = np.array([0xC2B2AE3D27D4EB4F], dtype=np.uint64)


class KnownPlaces:
    """The places that each person knows."""

    def __init__(self, pairs: int) -> None:
        """Room for about so many pairs of a person and a place."""
        bits = max(12, int(pairs * _ROOM_PER_PAIR).bit_length() - 1)
        self._shift = np.uint64(64 - bits)
        self._marked = np.zeros(1 << bits, dtype=np.bool_)

    def learn(self, person: NDArray[np.int64], place: NDArray[np.int64]) -> None:
        """From now on each of these people knows this place."""
        self._marked[self._mark(person, place)] = True

    def know(self, person: NDArray[np.int64], place: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether each of these people knows this place."""
        known: NDArray[np.bool_] = self._marked[self._mark(person, place)]
        return known

    def _mark(self, person: NDArray[np.int64], place: NDArray[np.int64]) -> NDArray[np.uint64]:
        stirred = person.astype(np.uint64) * _STIR_PERSON + place.astype(np.uint64)
        stirred ^= stirred >> np.uint64(29)
        marks: NDArray[np.uint64] = (stirred * _STIR_PLACE) >> self._shift
        return marks
