"""Small tables that people hand in: text files whose columns have usual names."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import polars as pl
from polars.exceptions import PolarsError

from castpoi.checkins.reading.words import Word, usual_columns
from castpoi.core.errors import BadInput

_SEPARATORS: Final = ("\t", ";", ",")


def read_text(path: Path, *, way_out: str) -> str:
    """The text of a file that is not empty."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as problem:
        raise BadInput(f"{path} cannot be read: {problem.strerror}; name another file") from problem
    except UnicodeDecodeError as problem:
        raise BadInput(f"{path} is not UTF-8 text; {way_out}") from problem
    if not text.strip():
        raise BadInput(f"{path} is empty; {way_out}")
    return text


def table_of(text: str, path: Path, *, way_out: str) -> pl.DataFrame:
    """The table that a text is, all of it as text; tabs, semicolons or commas part its columns."""
    header = text.lstrip().splitlines()[0]
    separator = max(_SEPARATORS, key=header.count)
    try:
        return pl.read_csv(text.encode(), separator=separator, infer_schema=False)
    except PolarsError as problem:
        raise BadInput(
            f"{path} is not a table ({str(problem).splitlines()[0]}); {way_out}"
        ) from problem


def column_of(columns: Sequence[str], word: Word) -> str | None:
    """The column that means a word of a check-in, by its usual names; None if there is none."""
    return next(iter(usual_columns(columns, word)), None)


def needed_column(columns: Sequence[str], word: Word, *, where: str, way_out: str) -> str:
    """The same for a word that the table must have."""
    found = column_of(columns, word)
    if found is None:
        raise BadInput(
            f"{where} has no column for the {word}; its columns are {', '.join(columns)}; {way_out}"
        )
    return found
