"""Parquet tables of castpoi's folders: written for their owner, read with the right types."""

from io import BytesIO
from pathlib import Path
from typing import Final

import polars as pl
from polars.exceptions import PanicException, PolarsError

from castpoi.core.errors import BrokenFolder

DAMAGED: Final = (PolarsError, PanicException)
"""Errors of polars for damaged parquet; a PanicException is not an Exception."""


def write_private_table(table: pl.DataFrame, path: Path) -> None:
    """Write a table to a new file that only its owner may read."""
    path.touch(mode=0o600)
    table.write_parquet(path, compression="zstd")


def read_table(
    path: Path, schema: pl.Schema, *, how_to_fix: str, content: bytes | None = None
) -> pl.DataFrame:
    """Read the columns of a schema, in its order and types.

    `how_to_fix` ends the sentences of errors. `content` are the bytes of the file, if they have
    been read already.
    """
    try:
        frame = pl.read_parquet(path if content is None else BytesIO(content), glob=False)
        return frame.select(schema.names()).cast(schema)
    except FileNotFoundError as problem:
        raise BrokenFolder(f"{path} is missing; {how_to_fix}") from problem
    except OSError as problem:
        raise BrokenFolder(f"{path} cannot be read: {_brief(problem)}; {how_to_fix}") from problem
    except DAMAGED as problem:
        raise BrokenFolder(f"{path} is damaged ({_brief(problem)}); {how_to_fix}") from problem


def _brief(problem: BaseException) -> str:
    return str(problem).strip().splitlines()[0][:160]
