"""Visits as the store has them: their identity, the rows of a user in order of time, the export."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl
import sqlalchemy as sa

from castpoi.checkins import record
from castpoi.core.errors import BadInput
from castpoi.core.files import new_file, write_private_table
from castpoi.core.progress import SILENCE, Progress
from castpoi.recommend.batch import sink
from castpoi.recommend.request import Visits
from castpoi.serving.store import VisitStore
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


CHUNK: Final = 100_000
"""Visits that are read at once."""

_NUMBER: Final = "number"  # of the user, in the store
_TIME: Final = "time"
_STORED: Final = pl.Schema(
    {_NUMBER: pl.Int64, record.USER: pl.String, record.PLACE: pl.String, _TIME: pl.Int64}
)
_OF_PLACE: Final = (record.LAT, record.LON, record.CATEGORY, record.NAME)


def export_visits(
    store: VisitStore,
    out: Path,
    places: pl.DataFrame | None = None,
    *,
    progress: Progress = SILENCE,
) -> dict[str, int]:
    """Write the visits of a store to a table, and return the counts of its rows.

    With `places` the position, category and name of each place are added, and visits at other
    places are left out. Nobody appears who was erased before the table was complete.
    """
    with new_file(out) as path, progress.task("exporting", total=store.counts()[1]) as task:
        parts: list[Path] = []
        for rows in store.chunks(most=CHUNK):
            parts.append(path.with_name(f"part-{len(parts)}.parquet"))
            write_private_table(pl.DataFrame(rows, schema=_STORED, orient="row"), parts[-1])
            task.advance(len(rows))
        if not parts:
            raise BadInput("the visit store has no visits; post some, or give another --store")
        # somebody may have been erased while the chunks were read
        is_kept = pl.col(_NUMBER).is_in(store.user_numbers())
        time = pl.col(_TIME).cast(record.INSTANT)
        if out.suffix != ".parquet":
            time = time.dt.to_string("%Y-%m-%dT%H:%M:%S%.fZ")
        stored = pl.scan_parquet(parts, glob=False).filter(is_kept)
        visits = stored.select(record.USER, record.PLACE, time)
        if places is not None:
            of_place = places.lazy().rename({record.PLACE: _NUMBER, record.PLACE_ID: record.PLACE})
            visits = visits.join(of_place.select(record.PLACE, *_OF_PLACE), on=record.PLACE)
        path.touch(mode=0o600)
        sink(visits, path)
        return _counts(stored, visits)


def _counts(stored: pl.LazyFrame, visits: pl.LazyFrame) -> dict[str, int]:
    count = pl.len().cast(pl.Int64)
    distinct = pl.col(record.USER, record.PLACE).n_unique().name.suffix("s")
    counts: dict[str, int] = (
        visits.select(count.alias("visits"), distinct).collect().row(0, named=True)
    )
    everything = int(stored.select(pl.len()).collect().item())
    return {**counts, "left_out": everything - counts["visits"]}
