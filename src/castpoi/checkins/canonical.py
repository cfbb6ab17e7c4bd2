"""Canonical order: check-ins by user, then instant, then place.

Most cities fit a trick: user, instant and place of a check-in packed into one 64-bit number.
Sorting the numbers sorts the check-ins, and unpacking them gives the columns back, so nothing is
looked up by row. Where the numbers do not fit, or rows carry more columns, polars sorts the table.
"""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from castpoi.checkins import record
from castpoi.checkins.microseconds import SECOND_US


def in_canonical_order(
    user: NDArray[np.uint32],
    at_us: NDArray[np.int64],
    place: NDArray[np.uint32],
    more: pl.DataFrame,
) -> pl.DataFrame:
    """The check-ins in canonical order: user, place, at_utc and the columns of `more`."""
    if not more.width and len(user):
        packing = _Packing.of(user, at_us, place)
        if packing is not None:
            return _table(*packing.unpack(np.sort(packing.pack(user, at_us, place))))
    return _table(user, at_us, place).hstack(more).sort(record.USER, record.AT_UTC, record.PLACE)


def _table(
    user: NDArray[np.uint32], at_us: NDArray[np.int64], place: NDArray[np.uint32]
) -> pl.DataFrame:
    instants = pl.Series(at_us).cast(record.INSTANT)
    return pl.DataFrame({record.USER: user, record.PLACE: place, record.AT_UTC: instants})


class _Packing:
    """How many bits user, time and place take in one number, most significant first."""

    def __init__(self, *, first_us: int, unit_us: int, time_bits: int, place_bits: int) -> None:
        self.first_us = first_us
        self.unit_us = unit_us
        self.time_bits = np.uint64(time_bits)
        self.place_bits = np.uint64(place_bits)

    @classmethod
    def of(
        cls, user: NDArray[np.uint32], at_us: NDArray[np.int64], place: NDArray[np.uint32]
    ) -> "_Packing | None":
        """The packing of these columns, None if they do not fit 64 bits."""
        first = int(at_us.min())
        whole_seconds = first % SECOND_US == 0 and not (at_us % SECOND_US).any()
        unit = SECOND_US if whole_seconds else 1
        time_bits = ((int(at_us.max()) - first) // unit).bit_length()
        place_bits = int(place.max()).bit_length()
        if int(user.max()).bit_length() + time_bits + place_bits > 64:
            return None
        return cls(first_us=first, unit_us=unit, time_bits=time_bits, place_bits=place_bits)

    def pack(
        self, user: NDArray[np.uint32], at_us: NDArray[np.int64], place: NDArray[np.uint32]
    ) -> NDArray[np.uint64]:
        packed = user.astype(np.uint64) << self.time_bits
        packed |= ((at_us - self.first_us) // self.unit_us).view(np.uint64)
        packed <<= self.place_bits
        packed |= place
        return packed

    def unpack(
        self, packed: NDArray[np.uint64]
    ) -> tuple[NDArray[np.uint32], NDArray[np.int64], NDArray[np.uint32]]:
        one = np.uint64(1)
        place = (packed & ((one << self.place_bits) - one)).astype(np.uint32)
        packed = packed >> self.place_bits
        time = (packed & ((one << self.time_bits) - one)).astype(np.int64)
        user = (packed >> self.time_bits).astype(np.uint32)
        return user, time * self.unit_us + self.first_us, place
