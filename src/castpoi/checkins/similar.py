"""The known places most similar to each new one. Shapes: M new places, K known places."""

from typing import Final

import numpy as np
import polars as pl

from castpoi.checkins import record
from castpoi.core.arrays import Numbers
from castpoi.geo.distance import EARTH_RADIUS_KM, unit_vectors

CATEGORY_KM: Final = 9.0
"""A place of another category counts as much farther: its squared distance as 9 km squared more."""

_AT_ONCE: Final = 2**24  # pairs of places


def most_similar(new: pl.DataFrame, known: pl.DataFrame, count: int = 1) -> Numbers:
    """Rows of the nearest known places, or of all if they are fewer, in no order. -> [M, count]

    Both tables have latitude, longitude and category. Categories match regardless of case; no
    category is one of its own.
    """
    points, of_known = (
        unit_vectors(each[record.LAT].to_numpy(), each[record.LON].to_numpy())
        for each in (new, known)
    )  # [M, 3], [K, 3]
    names = pl.concat([new[record.CATEGORY], known[record.CATEGORY]]).fill_null("")
    kind = names.str.strip_chars().str.to_lowercase().rank("dense").to_numpy()  # [M + K]
    of_new, other = kind[: len(new), None], kind[len(new) :]
    of_category = (CATEGORY_KM / EARTH_RADIUS_KM) ** 2 / 2
    count = min(count, len(known))
    found = [
        np.argpartition(
            # half the squared chord, and that of another category
            of_category * (of_new[some] != other) - points[some] @ of_known.T,
            count - 1,
        )[:, :count]
        for some in np.array_split(np.arange(len(new)), 1 + len(new) * len(known) // _AT_ONCE)
    ]  # [m, count] each
    return np.concatenate(found)
