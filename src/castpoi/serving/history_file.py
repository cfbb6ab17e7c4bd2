"""A history from a file: a table of places and times, or JSON in the words of the API."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import polars as pl
from polars.exceptions import PolarsError

from castpoi.checkins.reading.words import USUAL_NAMES, Word, plain
from castpoi.errors import BadInput
from castpoi.serving.request import Visit

_SEPARATORS: Final = ("\t", ";", ",")
_WAY_OUT: Final = (
    'give a table with the columns place and at, or JSON: [{"place": "...", "at": "..."}]'
)


def read_history(path: Path) -> tuple[Visit, ...]:
    """The visits of a file, in its order; a table without rows is an empty history."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as problem:
        raise BadInput(f"{path} cannot be read: {problem.strerror}") from problem
    except UnicodeDecodeError as problem:
        raise BadInput(f"{path} is not UTF-8 text; {_WAY_OUT}") from problem
    if not text.strip():
        raise BadInput(f"{path} is empty; {_WAY_OUT}")
    if text.lstrip()[0] in "[{":
        return _from_json(text, path)
    return _from_table(text, path)


def _from_json(text: str, path: Path) -> tuple[Visit, ...]:
    try:
        content = json.loads(text)
    except ValueError as problem:
        raise BadInput(f"{path} is not valid JSON: {problem}") from problem
    visits = content.get("history") if isinstance(content, dict) else content
    if not isinstance(visits, list):
        raise BadInput(f"{path} holds no list of visits; {_WAY_OUT}")
    return tuple(Visit.of(visit) for visit in visits)


def _from_table(text: str, path: Path) -> tuple[Visit, ...]:
    header = text.lstrip().splitlines()[0]
    separator = max(_SEPARATORS, key=header.count)
    try:
        table = pl.read_csv(text.encode(), separator=separator, infer_schema=False)
    except PolarsError as problem:
        raise BadInput(
            f"{path} is not a table ({str(problem).splitlines()[0]}); {_WAY_OUT}"
        ) from problem
    place, at = (_column(table.columns, word, path) for word in ("place", "time"))
    if table[place].has_nulls() or table[at].has_nulls():
        row = (table[place].is_null() | table[at].is_null()).arg_max()
        raise BadInput(f"{path}, row {(row or 0) + 2}: the place or the time is missing")
    places = table[place].str.strip_chars()  # as `castpoi data prepare` reads ids
    return tuple(Visit(*pair) for pair in zip(places, table[at], strict=True))


def _column(columns: Sequence[str], word: Word, path: Path) -> str:
    by_name = {plain(column): column for column in reversed(columns)}
    found = next((by_name[name] for name in USUAL_NAMES[word] if name in by_name), None)
    if found is None:
        raise BadInput(
            f"{path} has no column for the {word}; its columns are {', '.join(columns)}; {_WAY_OUT}"
        )
    return found
