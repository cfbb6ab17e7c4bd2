"""Between the API and the store: posted visits to rows, rows to answers, a city to rows."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from pydantic import TypeAdapter, ValidationError

from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.core.errors import BadInput, BrokenFolder
from castpoi.geo.zones import offsets_minutes, to_utc_us
from castpoi.methods.run import Run, city_of
from castpoi.recommend.moments import Moment, check_in_range, check_not_ahead, local_datetime
from castpoi.recommend.places import PlaceBook
from castpoi.serving.answers import Place, UserVisit
from castpoi.serving.schema import Id, PostedVisit
from castpoi.serving.store import StoredHistory, StoredVisit, VisitStore

_CHUNK: Final = 20_000
"""Check-ins of a city that are inserted together."""
_ID: Final[TypeAdapter[str]] = TypeAdapter(Id)


def stored_visit(posted: PostedVisit, places: PlaceBook, *, what: str, now_us: int) -> StoredVisit:
    """A posted visit as a row of the store; `what` names it in an error."""
    at_us = instant_of(posted.place, posted.at, places, what=what)
    check_not_ahead(at_us, now_us, what=what)
    return StoredVisit(user=posted.user, place=posted.place, at_us=at_us, key=posted.key)


def instant_of(place: str, moment: Moment, places: PlaceBook, *, what: str) -> int:
    """The instant of a visit; a time without an offset is the local time of the place."""
    if not moment.is_naive:
        return moment.clock_us
    number = places.number_of.get(place)
    if number is None:
        raise BadInput(
            f"{what}: the time has no offset from UTC, and the model does not know the place and "
            "its time zone; write the time as 2012-04-03T18:00:09-04:00"
        )
    zone = places.zones[places.zone_number[number]]
    local_us, first = np.array([moment.clock_us]), np.zeros(1, dtype=np.int64)
    at_us = int(to_utc_us(local_us, first, [zone])[0])
    local_time = local_datetime(moment.clock_us, 0).replace(tzinfo=None)
    check_in_range(at_us, local_time, what=what)
    return at_us


def answered_visits(history: StoredHistory, places: PlaceBook) -> list[UserVisit]:
    """Stored visits in local times, with the known details of their places."""
    numbers = [places.number_of.get(place) for place in history.place_ids]
    known = np.array([number is not None for number in numbers], dtype=np.bool_)
    zones = places.zone_number[[number for number in numbers if number is not None]]
    offsets = np.zeros(len(numbers), dtype=np.int64)  # UTC where the place is not known
    offsets[known] = offsets_minutes(history.at_us[known], zones, places.zones)
    return [
        _answered_visit(place, number, local_datetime(at_us, offset).isoformat(), places)
        for place, number, at_us, offset in zip(
            history.place_ids, numbers, history.at_us.tolist(), offsets.tolist(), strict=True
        )
    ]


def _answered_visit(place: str, number: int | None, at: str, places: PlaceBook) -> UserVisit:
    if number is None:
        return UserVisit(place=place, at=at, name=None, category=None, lat=None, lon=None)
    return UserVisit(at=at, **vars(answered_place(number, places)))


def answered_place(number: int, places: PlaceBook) -> Place:
    """A place by its number."""
    lat, lon = places.point(number)
    return Place(
        place=places.ids[number],
        name=places.names[number],
        category=places.categories[number],
        lat=lat,
        lon=lon,
    )


@dataclass(frozen=True, kw_only=True)
class CityImport:
    """Fills a new store with the check-ins of the run's city, once."""

    folder: Path | None
    """Folder of the city; None: where the run was trained, if it still exists."""
    report: Callable[[str], None]
    """Receives a sentence about each outcome."""

    def fill(self, store: VisitStore, run: Run) -> None:
        """Import the city unless the store has been used or has a city."""
        if not store.is_new():
            return
        try:
            city = city_of(run, self.folder)
        except BrokenFolder:
            if self.folder is not None:
                raise
            self.report(f"The store is empty: the run's city is no longer at {run.city}.")
            return
        imported = store.import_city(visits_of_city(city), fingerprint=city.fingerprint)
        self.report(f"Imported {imported:,} check-ins of the run's city into the new store.")
        if left_out := sum(not _is_valid_id(user) for user in city.users[record.USER_ID]):
            self.report(
                f"Left out the visits of {left_out:,} users whose ids no request can contain, so "
                "they could never be erased (over 256 characters, control characters, '.' or '..')."
            )


def visits_of_city(city: City) -> Iterator[list[StoredVisit]]:
    """The check-ins of a city in all splits, of users with valid ids, in chunks."""
    user_ids = city.users[record.USER_ID].to_list()
    is_kept = [_is_valid_id(user) for user in user_ids]
    place_ids = city.places[record.PLACE_ID].to_list()
    for rows in city.checkins.iter_slices(_CHUNK):
        columns = (rows[name].to_physical() for name in (record.USER, record.PLACE, record.AT_UTC))
        yield [
            StoredVisit(user=user_ids[user], place=place_ids[place], at_us=at_us)
            for user, place, at_us in zip(*columns, strict=True)
            if is_kept[user]
        ]


def _is_valid_id(user: str) -> bool:
    try:
        _ID.validate_python(user)
    except ValidationError:
        return False
    return True
