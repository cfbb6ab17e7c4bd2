"""Canonical order: check-ins by user, then instant, then place.

The user, instant and place of a check-in usually fit one 64-bit number. Sorting these numbers
sorts the check-ins, and unpacking them restores the columns, so that no row is looked up. Where
they do not fit, or rows have more columns, polars sorts the table.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from castpoi.checkins import record
from castpoi.checkins.record import SECOND_US

Codes = NDArray[np.uint32]
Instants = NDArray[np.int64]


def in_canonical_order(
    user: Codes, at_us: Instants, place: Codes, more: pl.DataFrame
) -> pl.DataFrame:
    """The check-ins in canonical order: user, place, at_utc and the columns of `more`."""
    if not more.width and len(user):
        packing = _Packing.of(user, at_us, place)
        if packing is not None:
            return _table(*packing.unpack(np.sort(packing.pack(user, at_us, place))))
    return _table(user, at_us, place).hstack(more).sort(record.USER, record.AT_UTC, record.PLACE)


def _table(user: Codes, at_us: Instants, place: Codes) -> pl.DataFrame:
    instants = pl.Series(at_us).cast(record.INSTANT)
    return pl.DataFrame({record.USER: user, record.PLACE: place, record.AT_UTC: instants})


@dataclass(frozen=True, kw_only=True)
class _Packing:
    """The bits of user, time and place in one number, the most significant first."""

    first_us: int
    unit_us: int
    time_bits: np.uint64
    place_bits: np.uint64

    @classmethod
    def of(cls, user: Codes, at_us: Instants, place: Codes) -> "_Packing | None":
        """The packing of these columns, None if they do not fit 64 bits."""
        first = int(at_us.min())
        whole_seconds = first % SECOND_US == 0 and not (at_us % SECOND_US).any()
        unit = SECOND_US if whole_seconds else 1
        time = ((int(at_us.max()) - first) // unit).bit_length()
        places = int(place.max()).bit_length()
        if int(user.max()).bit_length() + time + places > 64:
            return None
        bits = np.uint64(time), np.uint64(places)
        return cls(first_us=first, unit_us=unit, time_bits=bits[0], place_bits=bits[1])

    def pack(self, user: Codes, at_us: Instants, place: Codes) -> NDArray[np.uint64]:
        packed = user.astype(np.uint64) << self.time_bits
        packed |= ((at_us - self.first_us) // self.unit_us).view(np.uint64)
        packed <<= self.place_bits
        packed |= place
        return packed

    def unpack(self, packed: NDArray[np.uint64]) -> tuple[Codes, Instants, Codes]:
        one = np.uint64(1)
        place = (packed & ((one << self.place_bits) - one)).astype(np.uint32)
        packed = packed >> self.place_bits
        time = (packed & ((one << self.time_bits) - one)).astype(np.int64)
        user = (packed >> self.time_bits).astype(np.uint32)
        return user, time * self.unit_us + self.first_us, place
