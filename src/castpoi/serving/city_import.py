"""A new store begins with what the run's city already knows of its users."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.core.errors import BrokenFolder
from castpoi.methods.run import Run, city_of
from castpoi.serving.schema import Id
from castpoi.serving.store import StoredVisit, VisitStore

_CHUNK: Final = 20_000
"""Check-ins that are taken at once."""
_ID: Final[TypeAdapter[str]] = TypeAdapter(Id)


@dataclass(frozen=True, kw_only=True)
class CityImport:
    """Fills a store that is new with the check-ins of the run's city, once."""

    folder: Path | None
    """Where the city is; None: where the run was trained, if it is still there."""
    say: Callable[[str], None]
    """Hears what was done, in a sentence."""

    def fill(self, store: VisitStore, run: Run) -> None:
        """Take in the city unless the store has visits or has had a city."""
        if not store.is_new():
            return
        try:
            city = city_of(run, self.folder)
        except BrokenFolder:
            if self.folder is not None:
                raise
            self.say(f"The store begins empty: the run's city is not at {run.city} any more.")
            return
        taken = store.import_city(visits_of_city(city), fingerprint=city.fingerprint)
        self.say(f"Imported {taken:,} check-ins of the run's city into the new store.")
        if left_out := sum(not _can_be_asked_for(user) for user in city.users[record.USER_ID]):
            self.say(
                f"Left out the visits of {left_out:,} users: no request can name them, and so "
                "erase them (ids of over 256 characters, with control characters, '.' or '..')."
            )


def visits_of_city(city: City) -> Iterator[list[StoredVisit]]:
    """The check-ins of a city, whatever their part: the service foretells what follows them.

    Only of users whom a request can name: nobody else could ever be erased.
    """
    user_ids = city.users[record.USER_ID].to_list()
    is_kept = [_can_be_asked_for(user) for user in user_ids]
    place_ids = city.places[record.PLACE_ID].to_list()
    for rows in city.checkins.iter_slices(_CHUNK):
        columns = (rows[name].to_physical() for name in (record.USER, record.PLACE, record.AT_UTC))
        yield [
            StoredVisit(user=user_ids[user], place=place_ids[place], at_us=at_us)
            for user, place, at_us in zip(*columns, strict=True)
            if is_kept[user]
        ]


def _can_be_asked_for(user: str) -> bool:
    try:
        _ID.validate_python(user)
    except ValidationError:
        return False
    return True
