"""What a counting method may know: the check-ins of the parts before the one it foretells."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.core.errors import BadInput, TooFewCheckins

_KNOWN_BEFORE: Final = {
    record.TEST: (record.TRAIN, record.VALIDATION),
    record.VALIDATION: (record.TRAIN,),
}


def parts_before(part: str) -> tuple[str, ...]:
    """The parts of a split that may be counted before `part` is foretold."""
    if part not in _KNOWN_BEFORE:
        raise BadInput(f"part '{part}' cannot be foretold; choose {' or '.join(_KNOWN_BEFORE)}")
    return _KNOWN_BEFORE[part]


def known_rows(city: City, part: str) -> NDArray[np.int64]:
    """Rows of the city's trajectories that may be counted before `part` is foretold."""
    known = parts_before(part)
    rows = np.flatnonzero(
        np.isin(city.trajectories.part, [record.PARTS.index(name) for name in known])
    )
    if not len(rows):
        raise TooFewCheckins(
            f"the city has no check-ins in {' or '.join(known)}, so there is nothing to count; "
            "prepare it again from more check-ins"
        )
    return rows


def visits_per_place(city: City, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many of the given check-ins each place has. [P]"""
    counts = np.bincount(city.trajectories.place[rows], minlength=city.places.height)
    return counts.astype(np.int64)
