"""A history from a file: a table of places and times, or JSON in the words of the API."""

import json
from datetime import datetime
from pathlib import Path
from typing import Final

import polars as pl

from castpoi.checkins.reading.layout import naive_times_by_column
from castpoi.core.errors import BadInput
from castpoi.recommend.moments import local_datetime, moment_of
from castpoi.recommend.request import Visit
from castpoi.recommend.table_file import column_of, needed_column, read_text, table_of

_WAY_OUT: Final = (
    'give a table with the columns place and at, or JSON: [{"place": "...", "at": "..."}]'
)


def read_history(path: Path) -> tuple[Visit, ...]:
    """The visits of a file, in its order; a table without rows is an empty history."""
    text = read_text(path, way_out=_WAY_OUT)
    if text.lstrip()[0] in "[{":
        return _from_json(text, path)
    return _from_table(text, path)


def _from_json(text: str, path: Path) -> tuple[Visit, ...]:
    try:
        content = json.loads(text)
    except ValueError as problem:
        raise BadInput(f"{path} is not valid JSON: {problem}; {_WAY_OUT}") from problem
    visits = content.get("history") if isinstance(content, dict) else content
    if not isinstance(visits, list):
        raise BadInput(f"{path} holds no list of visits; {_WAY_OUT}")
    return tuple(Visit.of(visit) for visit in visits)


def _from_table(text: str, path: Path) -> tuple[Visit, ...]:
    table = table_of(text, path, way_out=_WAY_OUT)
    place, at = (
        needed_column(table.columns, word, where=str(path), way_out=_WAY_OUT)
        for word in ("place", "time")
    )
    if table[place].has_nulls() or table[at].has_nulls():
        row = (table[place].is_null() | table[at].is_null()).arg_max()
        raise BadInput(
            f"{path}, row {(row or 0) + 2}: the place or the time is missing; fill it in, or leave "
            "the row out"
        )
    _refuse_several_people(table, path)
    places = table[place].str.strip_chars()  # as `castpoi data prepare` reads ids
    times = table[at].to_list()
    if naive_times_by_column(at) == "utc":  # so does `castpoi data prepare`
        times = [_in_utc(time, what=f"{path}, row {row}") for row, time in enumerate(times, 2)]
    return tuple(Visit(*pair) for pair in zip(places, times, strict=True))


def _in_utc(time: str, *, what: str) -> datetime:
    return local_datetime(moment_of(time, what=what).clock_us, 0)


def _refuse_several_people(table: pl.DataFrame, path: Path) -> None:
    """A table with users is mostly all check-ins there are: not the history of anybody."""
    user = column_of(table.columns, "user")
    people = 0 if user is None else table[user].drop_nulls().str.strip_chars().n_unique()
    if people > 1:
        raise BadInput(
            f"{path}: the column '{user}' names {people:,} people; a history is that of one: leave "
            "the rows of the others out"
        )
