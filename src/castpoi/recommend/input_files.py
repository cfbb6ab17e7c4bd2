"""Files that users give: a history, or a table of places; columns are found by usual names."""

import json
from pathlib import Path
from typing import Final

import polars as pl
from polars.exceptions import PolarsError

from castpoi.checkins.reading.layouts import column_of, naive_times_by_column, needed_column
from castpoi.core.errors import BadInput
from castpoi.core.files import DAMAGED
from castpoi.recommend.request import Moment, Visit, moment_of

_SEPARATORS: Final = ("\t", ";", ",")
_HISTORY_FORMAT: Final = (
    'give a table with the columns place and at, or JSON: [{"place": "...", "at": "..."}]'
)


def read_history(path: Path) -> list[Visit]:
    """The visits of a CSV or JSON file in the order of the file."""
    text = _read_text(path, how_to_fix=_HISTORY_FORMAT)
    if text.lstrip()[0] not in "[{":
        return _history_of_table(_table_of(text, path, how_to_fix=_HISTORY_FORMAT), path)
    try:
        content = json.loads(text)
    except ValueError as problem:
        raise BadInput(f"{path} is not valid JSON: {problem}; {_HISTORY_FORMAT}") from problem
    visits = content.get("history") if isinstance(content, dict) else content
    if not isinstance(visits, list):
        raise BadInput(f"{path} has no list of visits; {_HISTORY_FORMAT}")
    return [Visit.of(visit) for visit in visits]


def _history_of_table(table: pl.DataFrame, path: Path) -> list[Visit]:
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
    user = column_of(table.columns, "user")
    users = 0 if user is None else table[user].drop_nulls().str.strip_chars().n_unique()
    if users > 1:
        raise BadInput(
            f"{path}: the column '{user}' has {users:,} users, but a history belongs to one; "
            "leave out the rows of the others"
        )
    places, times = table[place].str.strip_chars(), table[at]
    if naive_times_by_column(at) != "utc":
        return [Visit(*pair) for pair in zip(places, times, strict=True)]
    moments = [moment_of(time, what=f"{path}, row {n}") for n, time in enumerate(times, start=2)]
    in_utc = [Moment(moment.clock_us, is_naive=False) for moment in moments]
    return [Visit(*pair) for pair in zip(places, in_utc, strict=True)]


def read_frame(path: Path) -> pl.DataFrame:
    """The table of a parquet, JSON lines, csv or tsv file; values of csv and tsv are text."""
    if path.suffix not in (".parquet", ".jsonl", ".ndjson"):
        return read_text_table(path, how_to_fix="give a csv, tsv, jsonl or parquet file")
    try:
        return pl.read_parquet(path) if path.suffix == ".parquet" else pl.read_ndjson(path)
    except (*DAMAGED, OSError) as problem:
        raise BadInput(
            f"{path} cannot be read ({str(problem).splitlines()[0]}); write it again"
        ) from problem


def read_text_table(path: Path, *, how_to_fix: str) -> pl.DataFrame:
    """The table of a file; all values are text."""
    return _table_of(_read_text(path, how_to_fix=how_to_fix), path, how_to_fix=how_to_fix)


def _read_text(path: Path, *, how_to_fix: str) -> str:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as problem:
        raise BadInput(f"{path} cannot be read: {problem.strerror}; give another file") from problem
    except UnicodeDecodeError as problem:
        raise BadInput(f"{path} is not UTF-8 text; {how_to_fix}") from problem
    if not text.strip():
        raise BadInput(f"{path} is empty; {how_to_fix}")
    return text


def _table_of(text: str, path: Path, *, how_to_fix: str) -> pl.DataFrame:
    header = text.lstrip().splitlines()[0]
    separator = max(_SEPARATORS, key=header.count)
    try:
        return pl.read_csv(text.encode(), separator=separator, infer_schema=False)
    except PolarsError as problem:
        raise BadInput(
            f"{path} is not a table ({str(problem).splitlines()[0]}); {how_to_fix}"
        ) from problem
