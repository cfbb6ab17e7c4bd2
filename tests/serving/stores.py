"""The visit store as its tests open it, on SQLite and on PostgreSQL alike."""

from collections.abc import Callable

from castpoi.serving.store import VisitStore
from castpoi.serving.store_visits import StoredVisit

Opening = Callable[[], VisitStore]
"""Opens the same store again."""


def visit(user: str, place: str, at_us: int, key: str | None = None) -> StoredVisit:
    return StoredVisit(user=user, place=place, at_us=at_us, key=key)


def places_of(store: VisitStore, user: str, most: int = 100) -> list[str]:
    return list(store.histories([user], most=most)[user].places)
