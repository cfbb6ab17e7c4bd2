"""Visits as the store has them: their identity, and the rows of a user in order of time."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlalchemy as sa

from castpoi.core.errors import BadInput
from castpoi.recommend.request import Visits
from castpoi.serving.store_engine import USERS, VISITS


@dataclass(frozen=True, kw_only=True)
class StoredVisit:
    """A visit of a user, as stored."""

    user: str
    place: str
    at_us: int
    key: str | None = None  # of the client; a visit with a known key is not stored again

    @property
    def digest(self) -> bytes:
        """Identifies the visit among those of its user: by key, else by place and instant."""
        name = f"at {self.at_us} {self.place}" if self.key is None else f"key {self.key}"
        return hashlib.sha256(name.encode()).digest()[:16]


Cursor = tuple[int, str, int]
"""Time, place and number of a visit: the order of the visits of a user."""


def latest(
    connection: sa.Connection, user: str, most: int, before: Cursor | None = None
) -> Sequence[Any]:
    """The latest visits of a user, oldest first."""
    order = (VISITS.c.at_us, VISITS.c.place_id, VISITS.c.visit)
    latest = (
        sa.select(*order)
        .join(USERS, VISITS.c.user == USERS.c.number)
        .where(USERS.c.user_id == user)
        .order_by(*(column.desc() for column in order))
        .limit(most)
    )
    if before is not None:
        latest = latest.where(sa.tuple_(*order) < before)
    return connection.execute(latest).all()[::-1]


def visits_of(rows: Sequence[Any]) -> Visits:
    """Rows of one user as columns."""
    at_us = np.array([row.at_us for row in rows], dtype=np.int64)
    return Visits.at_instants([row.place_id for row in rows], at_us)


def cursor_of(text: str) -> Cursor:
    """Read the `next` of a page; raises BadInput."""
    at_us, visit, place = [*text.split(".", 2), "", ""][:3]
    if not (at_us.lstrip("-").isdecimal() and visit.isdecimal()):
        raise BadInput("after: not the `next` of a previous page; leave it out to begin again")
    return int(at_us), place, int(visit)
