"""Histories for tests of training: from lists of places, or all prefixes of others."""

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins.trajectory import Histories


def laid_out(visits: list[list[int]]) -> Histories:
    """The places that each user visits, a microsecond apart."""
    place = np.array([place for user in visits for place in user], dtype=np.int64)
    bounds = np.cumsum([0, *(len(user) for user in visits)])
    return Histories(
        place=place,
        at_us=np.arange(len(place)),
        offset_minutes=np.zeros(len(place), dtype=np.int64),
        bounds=bounds,
    )


def every_position(histories: Histories) -> NDArray[np.int64]:
    """All visits by their number."""
    return np.arange(len(histories.place))


def prefixes(histories: Histories) -> Histories:
    """Every history that ends with a visit, in the order of these visits."""
    ends = np.arange(len(histories.place)) + 1
    begins = np.repeat(histories.bounds[:-1], histories.lengths)
    visits = np.concatenate([np.arange(*pair) for pair in zip(begins, ends, strict=True)])
    return Histories(
        place=histories.place[visits],
        at_us=histories.at_us[visits],
        offset_minutes=histories.offset_minutes[visits],
        bounds=np.r_[0, np.cumsum(ends - begins)],
    )
