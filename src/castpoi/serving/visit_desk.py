"""Between the words of the API and the rows of the store: posted visits in, told visits out."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import numpy as np

from castpoi.core.errors import BadInput
from castpoi.geo.zones import offsets_minutes, to_utc_us
from castpoi.recommend.moments import (
    check_in_range,
    check_not_ahead,
    is_in_range,
    local_datetime,
    moment_of,
)
from castpoi.recommend.place_book import PlaceBook
from castpoi.recommend.request import Visit
from castpoi.serving.schema import PostedVisit
from castpoi.serving.store import StoredVisit


def stored_visit(posted: PostedVisit, places: PlaceBook, *, what: str, now_us: int) -> StoredVisit:
    """A posted visit as the store keeps it; `what` names it in an error."""
    at_us = visit_instant_us(posted.place, posted.at, places, what=what)
    check_not_ahead(at_us, now_us, what=what)
    return StoredVisit(user=posted.user, place=posted.place, at_us=at_us, key=posted.key)


def visit_instant_us(place: str, at: datetime, places: PlaceBook, *, what: str) -> int:
    """The instant of a visit; without an offset, its time is the wall clock of the place."""
    moment = moment_of(at, what=what)
    at_us = moment.clock_us
    if moment.is_naive:
        at_us = _at_the_wall_of(place, at_us, places, what)
        check_in_range(at_us, at, what=what)
    return at_us


def _at_the_wall_of(place: str, clock_us: int, places: PlaceBook, what: str) -> int:
    number = places.number_of.get(place)
    if number is None:
        raise BadInput(
            f"{what}: the time has no offset from UTC and the model does not know the place, so "
            "its wall clock is not known either; write the time as 2012-04-03T18:00:09-04:00"
        )
    zone = places.zones[places.zone_number[number]]
    return int(to_utc_us(np.array([clock_us]), np.zeros(1, dtype=np.int64), [zone])[0])


def history_visits(visits: Sequence[StoredVisit]) -> tuple[Visit, ...]:
    """Stored visits as a history to recommend after.

    Those out of range are left out: a city, or an older castpoi, may have stored some by their
    wall clocks.
    """
    known = (visit for visit in visits if is_in_range(visit.at_us))
    return tuple(Visit(visit.place, local_datetime(visit.at_us, 0)) for visit in known)


def told_visits(visits: Sequence[StoredVisit], places: PlaceBook) -> list[dict[str, Any]]:
    """Stored visits as the API tells them: local times, and what is known of the places."""
    numbers = [places.number_of.get(visit.place) for visit in visits]
    known = [number for number in numbers if number is not None]
    at_us = np.array(
        [visit.at_us for visit, number in zip(visits, numbers, strict=True) if number is not None],
        dtype=np.int64,
    )
    offsets = iter(offsets_minutes(at_us, places.zone_number[known], places.zones).tolist())
    return [
        {
            "place": visit.place,
            "at": local_datetime(visit.at_us, 0 if number is None else next(offsets)).isoformat(),
            **(dict.fromkeys(_KNOWN) if number is None else told_place(number, places)),
        }
        for visit, number in zip(visits, numbers, strict=True)
    ]


_KNOWN: Final = ("name", "category", "lat", "lon")


def told_place(number: int, places: PlaceBook) -> dict[str, Any]:
    """A place as the API tells it, but for its id."""
    lat, lon = places.point(number)
    return {
        "name": places.names[number],
        "category": places.categories[number],
        "lat": lat,
        "lon": lon,
    }
