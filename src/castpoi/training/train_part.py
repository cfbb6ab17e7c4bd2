"""The train part of a city, alone: no split can let a later part into what is learned from.

Shapes: N visits laid end to end.
"""

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.checkins.trajectory import Histories, Trajectories


def train_trajectories(city: City) -> Trajectories:
    """The train visits as they stand in the city."""
    whole = city.trajectories
    kept = whole.part == record.PARTS.index(record.TRAIN)
    return Trajectories(
        checkin=whole.checkin[kept],
        user=whole.user[kept],
        place=whole.place[kept],
        at_us=whole.at_us[kept],
        offset_minutes=whole.offset_minutes[kept],
        part=whole.part[kept],
    )


def train_histories(city: City) -> Histories:
    """The train visits of every user, end to end."""
    visits = city.trajectories
    rows = np.flatnonzero(visits.part == record.PARTS.index(record.TRAIN))
    starts = np.flatnonzero(np.r_[True, np.diff(visits.user[rows]) != 0])
    return Histories(
        place=visits.place[rows],
        at_us=visits.at_us[rows],
        offset_minutes=visits.offset_minutes[rows],
        bounds=np.r_[starts, len(rows)],
    )


def rows_with_history(trajectories: Trajectories) -> NDArray[np.int64]:
    """Rows before which their user has been somewhere."""
    return np.flatnonzero(np.arange(len(trajectories)) > trajectories.starts)


def user_begin(histories: Histories) -> NDArray[np.int64]:
    """The first visit of each visit's user. [N]"""
    return np.repeat(histories.bounds[:-1], histories.lengths)


def visits_with_history(histories: Histories) -> NDArray[np.int64]:
    """Visits before which their user has been somewhere: what can be foretold."""
    return np.flatnonzero(np.arange(len(histories.place)) > user_begin(histories))
