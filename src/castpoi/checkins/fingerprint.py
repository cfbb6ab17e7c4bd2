"""The fingerprint: SHA-256 over the canonical content of a split.

It covers who was where, when, and in which part; where the places are; and what category they
have. It does not cover display names, nor what is derived with a library that may change: zones
and local offsets. The bytes are laid out here by hand, little-endian, so that no machine, time
zone, file format or library version has a say.
"""

import hashlib
import struct
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from castpoi.checkins import record

_VERSION: Final = b"castpoi split 1\n"


def fingerprint_of(
    checkins: pl.DataFrame, users: pl.DataFrame, places: pl.DataFrame, split: pl.DataFrame
) -> str:
    """The fingerprint of a split whose tables stand in canonical order."""
    digest = hashlib.sha256(_VERSION)
    _add_texts(digest, users[record.USER_ID])
    _add_texts(digest, places[record.PLACE_ID])
    _add_texts(digest, places[record.CATEGORY].fill_null(""))
    _add_numbers(digest, places[record.LAT].to_numpy() + 0.0, "<f8")  # -0.0 becomes 0.0
    _add_numbers(digest, places[record.LON].to_numpy() + 0.0, "<f8")
    _add_numbers(digest, checkins[record.USER].to_numpy(), "<u4")
    _add_numbers(digest, checkins[record.PLACE].to_numpy(), "<u4")
    _add_numbers(digest, checkins[record.AT_UTC].to_physical().to_numpy(), "<i8")
    _add_numbers(digest, split[record.PART].to_physical().to_numpy(), "u1")
    return digest.hexdigest()


def _add_texts(digest: "hashlib._Hash", texts: pl.Series) -> None:
    """Count, lengths in bytes, then all texts end to end: no separator can be forged."""
    lengths = texts.str.len_bytes().to_numpy()
    _add_numbers(digest, lengths, "<u4")
    digest.update("".join(texts.to_list()).encode())


def _add_numbers(digest: "hashlib._Hash", numbers: NDArray[np.generic], layout: str) -> None:
    digest.update(struct.pack("<Q", len(numbers)))
    digest.update(np.ascontiguousarray(numbers.astype(layout, copy=False)).data)
