"""A table in parts, which are in memory or in files: steps read one part at a time.

In memory a table is one part. With a ceiling of memory (`Disk`) its parts are files; a part has all
check-ins of its users, and the users of a part follow those of the part before it. So a step that
needs the check-ins of one user only is applied to each part, and one that needs all of them first
reads what it needs of every part: counts, or the codes that occur.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from castpoi.checkins import record

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Disk:
    """Where parts are stored that do not fit in memory together, and how large they may be."""

    folder: Path
    rows_at_once: int


class Tables:
    """A table in parts; a part in a file is read when it is needed."""

    def __init__(self, parts: Iterable[pl.DataFrame | Path]) -> None:
        self.parts = tuple(parts)

    def __iter__(self) -> Iterator[pl.DataFrame]:
        for part in self.parts:
            yield part if isinstance(part, pl.DataFrame) else read_part(part)

    @property
    def height(self) -> int:
        """Number of rows of all parts."""
        return sum(
            part.height
            if isinstance(part, pl.DataFrame)
            else int(pl.scan_ipc(part).select(pl.len()).collect().item())
            for part in self.parts
        )

    def lazy(self) -> pl.LazyFrame:
        """All rows as a query."""
        parts = (p.lazy() if isinstance(p, pl.DataFrame) else pl.scan_ipc(p) for p in self.parts)
        return pl.concat(parts)

    def arrays(self, *columns: str) -> Iterator[tuple[NDArray[Any], ...]]:
        """Some columns of each part as numbers."""
        for part in self.parts:
            table = part if isinstance(part, pl.DataFrame) else read_part(part, columns)
            yield tuple(table[name].to_physical().to_numpy() for name in columns)

    def map(self, change: Callable[[pl.DataFrame], pl.DataFrame]) -> "Tables":
        """The table with a change in each part; files are replaced."""
        return Tables(
            change(part)
            if isinstance(part, pl.DataFrame)
            else write_part(change(read_part(part)), part)
            for part in self.parts
        )

    def codes_in(self, column: str) -> Mask:
        """Whether each code occurs in a column of codes, up to the largest."""
        found = np.zeros(0, dtype=np.bool_)
        for (codes,) in self.arrays(column):
            counts = np.bincount(codes, minlength=len(found))
            counts[: len(found)] += found
            found = counts > 0
        return found


def read_part(path: Path, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """A part from its file."""
    return pl.read_ipc(path, columns=None if columns is None else [*columns])


def write_part(table: pl.DataFrame, path: Path) -> Path:
    """Write or replace the file of a part; only its owner may read it."""
    fresh = path.with_suffix(".new")  # the former file may be mapped to memory
    fresh.touch(mode=0o600)
    table.write_ipc(fresh)
    return fresh.replace(path)


def by_users(tables: Tables, disk: Disk) -> Tables:
    """The same rows in files, each with all rows of a range of users, in order; in any row order.

    A user with more rows than may be in memory at once has a file alone.
    """
    counts = np.zeros(len(tables.codes_in(record.USER)), dtype=np.int64)
    for (user,) in tables.arrays(record.USER):
        counts += np.bincount(user, minlength=len(counts))
    range_of = (np.cumsum(counts) - 1).clip(min=0) // disk.rows_at_once
    pieces: dict[int, list[Path]] = {}
    for source, (path, table) in enumerate(zip(tables.parts, tables, strict=True)):
        numbers = pl.Series("range", range_of[table[record.USER].to_numpy()])
        for (number,), rows in table.group_by(numbers):
            own = pieces.setdefault(int(str(number)), [])
            own.append(write_part(rows, disk.folder / f"range-{number}-{source}"))
        assert isinstance(path, Path)
        path.unlink()
    return Tables(
        _joined(pieces[number], disk.folder / f"range-{number}") for number in sorted(pieces)
    )


def _joined(pieces: list[Path], path: Path) -> Path:
    rows = pl.concat([read_part(piece) for piece in pieces], how="diagonal")
    for piece in pieces:
        piece.unlink()
    return write_part(rows, path)
