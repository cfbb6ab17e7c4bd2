"""One history: the visits of one person in time order, places by number.

Shapes: T visits.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins.trajectory import Histories
from castpoi.geo.zones import offsets_minutes, to_utc_us
from castpoi.recommend.moments import check_in_range, moment_of
from castpoi.recommend.place_book import PlaceBook
from castpoi.recommend.request import Visit


@dataclass(frozen=True, kw_only=True)
class History:
    """Visits, oldest first; those of one instant by place number."""

    place: NDArray[np.int64]
    """[T]"""
    at_us: NDArray[np.int64]
    """UTC microseconds. [T]"""
    offset_minutes: NDArray[np.int64]
    """Local time minus UTC. [T]"""
    next_at_us: int | None = None
    """Moment of the visit to come, for a model that knows the time. UTC microseconds."""

    def __len__(self) -> int:
        return len(self.place)

    def until(self, at_us: int) -> "History":
        """The visits not later than an instant."""
        return self._take(self.at_us <= at_us)

    def without(self, visit: int) -> "History":
        """The history had this visit not been made."""
        return self._take(np.arange(len(self)) != visit)

    def _take(self, kept: NDArray[np.bool_]) -> "History":
        return replace(
            self,
            place=self.place[kept],
            at_us=self.at_us[kept],
            offset_minutes=self.offset_minutes[kept],
        )


def end_to_end(histories: Sequence[History]) -> Histories:
    """Many histories as one batch for a ranker; it tells the moments to come if all do."""
    nothing = np.empty(0, dtype=np.int64)
    moments = [each.next_at_us for each in histories if each.next_at_us is not None]
    is_told = len(moments) == len(histories)
    return Histories(
        place=np.concatenate([nothing, *(history.place for history in histories)]),
        at_us=np.concatenate([nothing, *(history.at_us for history in histories)]),
        offset_minutes=np.concatenate(
            [nothing, *(history.offset_minutes for history in histories)]
        ),
        bounds=np.cumsum([0, *map(len, histories)], dtype=np.int64),
        next_at_us=np.array(moments, dtype=np.int64) if is_told else None,
    )


def history_of(visits: Sequence[Visit], places: PlaceBook) -> tuple[History, int]:
    """The history of visits in any order, and how many were skipped: their place is not known."""
    moments = [moment_of(visit.at, what=_name_of(number)) for number, visit in enumerate(visits)]
    numbers = [places.number_of.get(visit.place, -1) for visit in visits]
    known = np.array([number >= 0 for number in numbers], dtype=np.bool_)
    place = np.array(numbers, dtype=np.int64)[known]
    clock_us = np.array([moment.clock_us for moment in moments], dtype=np.int64)[known]
    is_naive = np.array([moment.is_naive for moment in moments], dtype=np.bool_)[known]
    at_us = clock_us
    if is_naive.any():  # the wall clock of the visited place
        local_us = to_utc_us(clock_us, places.zone_number[place], places.zones)
        at_us = np.where(is_naive, local_us, clock_us)
        for instant, number in zip(at_us.tolist(), np.flatnonzero(known).tolist(), strict=True):
            check_in_range(instant, visits[number].at, what=_name_of(number))
    order = np.lexsort((place, at_us))
    place, at_us = place[order], at_us[order]
    offsets = offsets_minutes(at_us, places.zone_number[place], places.zones)
    history = History(place=place, at_us=at_us, offset_minutes=offsets.astype(np.int64))
    return history, len(visits) - len(place)


def _name_of(number: int) -> str:
    return f"visit {number + 1} of the history"
