"""Files that users give: a history, or a table of places; columns are found by usual names."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import polars as pl
from polars.exceptions import PolarsError

from castpoi.checkins.reading.layouts import Word, naive_times_by_column, usual_columns
from castpoi.core.errors import BadInput
from castpoi.recommend.moments import Moment, moment_of
from castpoi.recommend.request import Visit

_SEPARATORS: Final = ("\t", ";", ",")
_HISTORY_FORMAT: Final = (
    'give a table with the columns place and at, or JSON: [{"place": "...", "at": "..."}]'
)


def read_history(path: Path) -> list[Visit]:
    """The visits of a CSV or JSON file in the order of the file."""
    text = read_text(path, how_to_fix=_HISTORY_FORMAT)
    if text.lstrip()[0] in "[{":
        return _history_of_json(text, path)
    return _history_of_table(text, path)


def _history_of_json(text: str, path: Path) -> list[Visit]:
    try:
        content = json.loads(text)
    except ValueError as problem:
        raise BadInput(f"{path} is not valid JSON: {problem}; {_HISTORY_FORMAT}") from problem
    visits = content.get("history") if isinstance(content, dict) else content
    if not isinstance(visits, list):
        raise BadInput(f"{path} has no list of visits; {_HISTORY_FORMAT}")
    return [Visit.of(visit) for visit in visits]


def _history_of_table(text: str, path: Path) -> list[Visit]:
    table = table_of(text, path, how_to_fix=_HISTORY_FORMAT)
    place, at = (
        needed_column(table.columns, word, where=str(path), how_to_fix=_HISTORY_FORMAT)
        for word in ("place", "time")
    )
    if table[place].has_nulls() or table[at].has_nulls():
        row = (table[place].is_null() | table[at].is_null()).arg_max()
        raise BadInput(
            f"{path}, row {(row or 0) + 2}: the place or the time is missing; fill it in, or leave "
            "the row out"
        )
    _check_one_user(table, path)
    places, times = table[place].str.strip_chars(), table[at]
    if naive_times_by_column(at) != "utc":
        return [Visit(*pair) for pair in zip(places, times, strict=True)]
    clocks = [moment_of(time, what=f"{path}, row {n}").clock_us for n, time in enumerate(times, 2)]
    return [
        Visit(place, Moment(at_us, is_naive=False))
        for place, at_us in zip(places, clocks, strict=True)
    ]


def _check_one_user(table: pl.DataFrame, path: Path) -> None:
    user = column_of(table.columns, "user")
    users = 0 if user is None else table[user].drop_nulls().str.strip_chars().n_unique()
    if users > 1:
        raise BadInput(
            f"{path}: the column '{user}' has {users:,} users, but a history belongs to one; "
            "leave out the rows of the others"
        )


def read_text(path: Path, *, how_to_fix: str) -> str:
    """The text of a file that must not be empty."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as problem:
        raise BadInput(f"{path} cannot be read: {problem.strerror}; give another file") from problem
    except UnicodeDecodeError as problem:
        raise BadInput(f"{path} is not UTF-8 text; {how_to_fix}") from problem
    if not text.strip():
        raise BadInput(f"{path} is empty; {how_to_fix}")
    return text


def table_of(text: str, path: Path, *, how_to_fix: str) -> pl.DataFrame:
    """A table whose columns are separated by tabs, semicolons or commas; all values as text."""
    header = text.lstrip().splitlines()[0]
    separator = max(_SEPARATORS, key=header.count)
    try:
        return pl.read_csv(text.encode(), separator=separator, infer_schema=False)
    except PolarsError as problem:
        raise BadInput(
            f"{path} is not a table ({str(problem).splitlines()[0]}); {how_to_fix}"
        ) from problem


def column_of(columns: Sequence[str], word: Word) -> str | None:
    """The column with one of the usual names of a check-in field; None without one."""
    return next(iter(usual_columns(columns, word)), None)


def needed_column(columns: Sequence[str], word: Word, *, where: str, how_to_fix: str) -> str:
    """The same for a field that the table must have."""
    found = column_of(columns, word)
    if found is None:
        raise BadInput(
            f"{where} has no column for the {word}; its columns are {', '.join(columns)}; "
            f"{how_to_fix}"
        )
    return found
