"""The people of a batch: their ids, their visits and the filters of each."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from castpoi.checkins import record
from castpoi.checkins.reading.layouts import needed_column
from castpoi.core.errors import BadInput, CastPoiError
from castpoi.core.frames import as_frame, is_frame, texts
from castpoi.recommend.request import Request, Visits

if TYPE_CHECKING:
    from castpoi.recommend.recommender import Recommender

_BOX: Final = ("south", "west", "north", "east")
_NUMERIC: Final = ("near_lat", "near_lon", "within_km", *_BOX, "max_per_category")
FILTER_COLUMNS: Final = (*_NUMERIC, "at", "category", "exclude")
"""Columns of a table of people that filter the places of one person."""

_HOW: Final = "name them user, place and time, or in one of the usual ways"


@dataclass(frozen=True, kw_only=True)
class People:
    """The people of a batch, in order, with their visits or filters."""

    users: pl.Series  # their ids, each once
    visits: Visits | None = None
    """Visits of all of them, person by person; None: those of the run's city."""
    bounds: NDArray[np.int64] | None = None
    """The visits of person b are the slice bounds[b]:bounds[b + 1]."""
    filters: pl.DataFrame | None = None  # their own filters (`FILTER_COLUMNS`), row by row
    common: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of `Recommender.recommend` for everybody."""

    def __post_init__(self) -> None:
        if self.users.is_empty():
            raise BadInput("there is nobody to recommend to; the table of people has no rows")
        if self.users.is_duplicated().any():
            twice = int(self.users.is_duplicated().sum())
            raise BadInput(f"{twice:,} rows name a person twice; give each person one row")

    @classmethod
    def of_users(cls, table: pl.DataFrame, **common: Any) -> "People":
        """The users of a column, with the filter columns of the table."""
        user = needed_column(table.columns, "user", where="the table of people", how_to_fix=_HOW)
        filters = table.select(name for name in FILTER_COLUMNS if name in table.columns)
        numeric = [name for name in _NUMERIC if name in filters.columns]
        read = filters.with_columns(pl.col(numeric).cast(pl.Float64, strict=False))
        for name in numeric:
            unread = (read[name].is_null() & filters[name].is_not_null()).arg_true()
            if len(unread):
                raise BadInput(
                    f"row {unread[0] + 1} of the table of people has {filters[name][unread[0]]!r} "
                    f"as {name}, which is not a number"
                )
        return cls(users=texts(table[user]), filters=read if read.width else None, common=common)

    @classmethod
    def of_visits(cls, table: pl.DataFrame, **common: Any) -> "People":
        """Everybody in a table of visits: user, place and time."""
        user, place, at = (
            needed_column(table.columns, word, where="the table of visits", how_to_fix=_HOW)
            for word in ("user", "place", "time")
        )
        ids = texts(table[user]).alias("user").to_frame().with_row_index("row")
        rows = ids.group_by("user", maintain_order=True).agg("row")
        order = rows["row"].explode()
        return cls(
            users=rows["user"],
            visits=Visits.of_columns(table[place].gather(order), table[at].gather(order)),
            bounds=np.append(0, rows["row"].list.len().cum_sum().to_numpy()),
            common=common,
        )

    def __len__(self) -> int:
        return len(self.users)

    def requests(self, start: int, end: int) -> Iterator[tuple[str, Request | CastPoiError]]:
        """Each person of a slice, with a request, or the error of an invalid one."""
        filters = None if self.filters is None else self.filters[start:end].to_dicts()
        for row, user in enumerate(self.users[start:end].to_list()):
            own = {} if filters is None else _own_filters(filters[row])
            whose = (
                {"user": user} if self.visits is None else {"history": self._visits(start + row)}
            )
            try:
                yield user, Request.of(**whose, **{**self.common, **own})
            except CastPoiError as problem:
                yield user, problem

    def _visits(self, number: int) -> Visits:
        assert self.visits is not None
        assert self.bounds is not None
        return self.visits.part(*self.bounds[number : number + 2].tolist())

    @property
    def digest(self) -> str:
        """SHA-256 of the ids, visits, filters and options."""
        content = hashlib.sha256(json.dumps(dict(self.common), default=str).encode())
        tables = [self.users.to_frame(), *([] if self.filters is None else [self.filters])]
        for table in tables:
            content.update(table.write_json().encode())
        if self.visits is not None:
            places = pl.Series(self.visits.places, dtype=pl.String).hash().to_numpy()
            for column in (places, self.visits.clock_us, self.visits.is_naive, self.bounds):
                content.update(np.ascontiguousarray(column).data)
        return content.hexdigest()


def people_of(
    recommender: "Recommender", users: Any = None, histories: Any = None, **common: Any
) -> People:
    """All users of the run's city, some of them (ids or a table), or a table of visits."""
    if users is not None and histories is not None:
        raise BadInput("give either users or histories, and not both")
    if histories is not None:
        return People.of_visits(as_frame(histories, what="the histories"), **common)
    if users is None:
        if recommender.users is None:
            raise BadInput("this recommender has no users; give a table of histories")
        return People(users=recommender.users.ids, common=common)
    table = users if is_frame(users) else pl.DataFrame({record.USER: list(users)}, strict=False)
    return People.of_users(as_frame(table, what="the users"), **common)


def _own_filters(row: Mapping[str, Any]) -> dict[str, Any]:
    """The filters of one person, from a row in which empty cells are null."""
    own = {name: row.get(name) for name in ("within_km", "at") if row.get(name) is not None}
    if row.get("near_lat") is not None:
        own["near"] = (row["near_lat"], row.get("near_lon"))
    if row.get("category") is not None:
        own["categories"] = [row["category"]]
    if any(row.get(name) is not None for name in _BOX):
        own["box"] = [row.get(name) for name in _BOX]
    if row.get("max_per_category") is not None:
        most = row["max_per_category"]
        own["max_per_category"] = int(most) if most == int(most) else most
    if row.get("exclude") is not None:  # a list of ids, or a text such as "470; 471"
        ids = row["exclude"]
        own["exclude"] = [each.strip() for each in ids.split(";")] if isinstance(ids, str) else ids
    return own
