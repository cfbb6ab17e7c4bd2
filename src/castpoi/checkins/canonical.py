"""Canonical order: check-ins by user, then instant, then place.

The user, instant and place of a check-in usually fit one 64-bit number. Sorting these numbers
sorts the check-ins, and unpacking them restores the columns, so that no row is looked up. Where
they do not fit, or rows have more columns, polars sorts the table.
"""

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
    if not more.width and len(user) and (columns := _sorted(user, at_us, place)):
        return _table(*columns)
    return _table(user, at_us, place).hstack(more).sort(record.USER, record.AT_UTC, record.PLACE)


def _table(user: Codes, at_us: Instants, place: Codes) -> pl.DataFrame:
    instants = pl.Series(at_us).cast(record.INSTANT)
    return pl.DataFrame({record.USER: user, record.PLACE: place, record.AT_UTC: instants})


def _sorted(user: Codes, at_us: Instants, place: Codes) -> tuple[Codes, Instants, Codes] | None:
    """The columns in canonical order, None if a check-in does not fit 64 bits."""
    first = int(at_us.min())
    whole_seconds = first % SECOND_US == 0 and not (at_us % SECOND_US).any()
    unit = SECOND_US if whole_seconds else 1
    time_bits = ((int(at_us.max()) - first) // unit).bit_length()
    place_bits = int(place.max()).bit_length()
    if int(user.max()).bit_length() + time_bits + place_bits > 64:
        return None
    packed = user.astype(np.uint64) << np.uint64(time_bits)
    packed |= ((at_us - first) // unit).view(np.uint64)
    packed <<= np.uint64(place_bits)
    packed |= place
    packed.sort()
    place = (packed & np.uint64((1 << place_bits) - 1)).astype(np.uint32)
    packed >>= np.uint64(place_bits)
    time = (packed & np.uint64((1 << time_bits) - 1)).astype(np.int64)
    packed >>= np.uint64(time_bits)
    return packed.astype(np.uint32), time * unit + first, place
