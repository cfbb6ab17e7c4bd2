"""Files that users give: a history, or a table of places; columns are found by usual names."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl
from polars.exceptions import PolarsError

from castpoi.checkins.reading.layouts import column_of, naive_times_by_column, needed_column
from castpoi.core.errors import BadInput
from castpoi.core.files import DAMAGED
from castpoi.recommend.request import Visits

_SEPARATORS: Final = ("\t", ";", ",")
_HISTORY_FORMAT: Final = (
    'give a table with the columns place and at, or JSON: [{"place": "...", "at": "..."}]'
)


def read_history(path: Path) -> Visits:
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
    return Visits.of(visits)


def _history_of_table(table: pl.DataFrame, path: Path) -> Visits:
    place, at = (
        needed_column(table.columns, word, where=str(path), how_to_fix=_HISTORY_FORMAT)
        for word in ("place", "time")
    )
    user = column_of(table.columns, "user")
    users = 0 if user is None else table[user].drop_nulls().str.strip_chars().n_unique()
    if users > 1:
        raise BadInput(
            f"{path}: the column '{user}' has {users:,} users, but a history belongs to one; "
            "leave out the rows of the others"
        )
    visits = Visits.of_columns(table[place].str.strip_chars(), table[at])
    if naive_times_by_column(at) == "utc":
        return replace(visits, is_naive=np.zeros_like(visits.is_naive))
    return visits


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
