"""A table of a city, run or result: written, and read with the types it should have."""

from io import BytesIO
from pathlib import Path
from typing import Final

import polars as pl
from polars.exceptions import PanicException, PolarsError

from castpoi.core.errors import BrokenFolder

DAMAGED: Final = (PolarsError, PanicException)
"""What polars raises for damaged parquet; a PanicException is not an Exception."""


def write_private_table(table: pl.DataFrame, path: Path) -> None:
    """Write a table to a new file that only its owner may read."""
    path.touch(mode=0o600)
    table.write_parquet(path, compression="zstd")


def read_table(
    path: Path, schema: pl.Schema, *, way_out: str, content: bytes | None = None
) -> pl.DataFrame:
    """The columns of a schema, in its order and types; `way_out` says how to make the file again.

    `content` are the bytes of the file, where somebody has read them before.
    """
    try:
        frame = pl.read_parquet(path if content is None else BytesIO(content), glob=False)
        return frame.select(schema.names()).cast(schema)
    except FileNotFoundError as problem:
        raise BrokenFolder(f"{path} is missing; {way_out}") from problem
    except OSError as problem:
        raise BrokenFolder(f"{path} cannot be read: {_brief(problem)}; {way_out}") from problem
    except DAMAGED as problem:
        raise BrokenFolder(f"{path} is damaged ({_brief(problem)}); {way_out}") from problem


def _brief(problem: BaseException) -> str:
    return str(problem).strip().splitlines()[0][:160]
