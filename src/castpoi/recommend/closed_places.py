"""Closed places: never recommended, but still places of histories."""

from collections.abc import Iterable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final

import polars as pl

from castpoi.checkins.reading.layouts import needed_column
from castpoi.core.frames import as_frame, is_frame, texts
from castpoi.recommend.cold_places import TableOfPlaces
from castpoi.recommend.input_files import read_frame

ClosedPlaces = TableOfPlaces | Iterable[str | int]
"""Ids of closed places, or a table of places or its file."""

_DATE: Final = "date_closed"
_STATUS: Final = "operating_status"
_FORMAT: Final = f"give a table with the column place and, if places are open, {_DATE} or {_STATUS}"


def closed_ids(closed: ClosedPlaces | None, places: TableOfPlaces | None = None) -> set[str]:
    """Ids of the closed places, and of those that a table of new `places` marks as closed.

    In a table with a column `date_closed` or `operating_status`, a place is closed if its date is
    not after today or its status contains "closed"; without these columns every place is closed.
    """
    if isinstance(closed, str | Path) or is_frame(closed):
        found = _of_table(closed, what="the table of closed places", is_marked=False)
    else:
        found = {str(each) for each in closed or ()}
    if places is None:
        return found
    return found | _of_table(places, what="the table of new places", is_marked=True)


def _of_table(source: object, *, what: str, is_marked: bool) -> set[str]:
    """Ids of closed places; where `is_marked`, those of no other places."""
    if isinstance(source, str | Path):
        table, what = read_frame(Path(source)), str(source)
    else:
        table = as_frame(source, what=what)
    ids = texts(table[needed_column(table.columns, "place", where=what, how_to_fix=_FORMAT)])
    marks = [name for name in (_DATE, _STATUS) if name in table.columns]
    if not marks and not is_marked:
        return set(ids.str.strip_chars().drop_nulls())
    today = datetime.now(UTC).date()
    is_closed = pl.Series([_is_closed(row, today) for row in table.select(marks).to_dicts()])
    return set(ids.str.strip_chars().filter(is_closed).drop_nulls()) if marks else set()


def _is_closed(row: dict[str, object], today: date) -> bool:
    """Whether the date of a place has come, or its status contains "closed"."""
    since = str(row.get(_DATE) or "").strip()
    try:
        has_closed = bool(since) and date.fromisoformat(since[:10]) <= today
    except ValueError:  # a year or a text
        has_closed = True
    return has_closed or "closed" in str(row.get(_STATUS) or "").lower()
