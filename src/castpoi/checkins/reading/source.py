"""One table of check-ins: a file that is recognised and scanned without loading all of it, or a
data frame."""

import csv
import errno
import gzip
import hashlib
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any, Final

import polars as pl
from polars.exceptions import NoDataError

from castpoi.checkins import record
from castpoi.checkins.reading.layouts import TABLE, Layout
from castpoi.checkins.tables import Disk
from castpoi.core.errors import BadInput
from castpoi.core.files import DAMAGED

NOT_TEXT: Final = "\ufffd"  # replaces bytes that are not in the encoding
PLACE_KEY: Final = "place of the places table"  # with spaces: clashes with no column of a table
MAX_LINE: Final = 1_000_000  # limit for one line in characters; a longer one could fill the memory
csv.field_size_limit(MAX_LINE)
_SHORTEST_ROW: Final = 32  # bytes of a row of text, to estimate the number of rows
_SHORTEST_GZIP: Final = 8  # the same when compressed


@dataclass(frozen=True, kw_only=True)
class Source:
    """A table of check-ins, and how its rows are read."""

    name: str  # in errors: the path of a file
    columns: tuple[str, ...]
    layout: Layout = TABLE
    table: pl.LazyFrame | None = None  # if its columns have types; None: a text file
    is_file: bool = True
    delimiter: str = ","
    encoding: str = "utf-8"
    part: str | None = None  # of a split, if the file is one of its parts
    places: pl.DataFrame | None = None  # by id as text; joined to the rows
    place_column: str = ""  # whose ids are joined
    remarks: tuple[str, ...] = ()  # decisions of the reader, one sentence each

    @property
    def path(self) -> Path:
        """The file."""
        return Path(self.name)

    @property
    def is_text(self) -> bool:
        """Whether the source is a text file, whose columns have no types."""
        return self.table is None

    @property
    def has_header(self) -> bool:
        """Whether the first line names the columns."""
        return self.layout.header is None

    @property
    def _quote(self) -> str | None:
        is_table = not self.layout.columns
        return '"' if self.has_header or is_table else None

    @property
    def place_words(self) -> dict[str, str]:
        """Word -> column of the joined places."""
        columns = [] if self.places is None else self.places.columns
        return {column.split(" ")[0]: column for column in columns if column != PLACE_KEY}

    def scan(self, *, ragged: bool = False) -> pl.LazyFrame:
        """All rows with their number from 0; the columns of a text file are text.

        `ragged` also reads rows with too many cells, cut to the width of the header.
        """
        rows = self._scan_text(ragged=ragged) if self.table is None else self.table
        rows = rows.with_row_index(record.ROW)
        if self.places is None:
            return rows
        schema = rows.collect_schema()
        return rows.join(
            self.places.lazy(),
            left_on=id_text(self.place_column, schema[self.place_column]).str.strip_chars(),
            right_on=PLACE_KEY,
            how="left",
            maintain_order="left",
        )

    def _scan_text(self, *, ragged: bool) -> pl.LazyFrame:
        return pl.scan_csv(
            self.path if self.encoding == "utf-8" else self._transcoded(),
            separator=self.delimiter,
            has_header=self.has_header,
            new_columns=list(self.columns),
            infer_schema=False,
            quote_char=self._quote,
            truncate_ragged_lines=ragged,
            glob=False,
        )

    def _transcoded(self) -> bytes:
        try:
            with open_text(self.path, self.encoding, errors="strict") as text:
                return text.read().encode()
        except UnicodeDecodeError as problem:
            raise BadInput(
                f"{self.name}{_where_not_text(self)} is not {self.encoding} text; set "
                "--encoding to the one that it was written with"
            ) from problem

    def lines(self) -> Iterator[tuple[int, list[str]]]:
        """(line number, cells) of every row, blank lines included; slow, only for errors."""
        with open_text(self.path, self.encoding) as text:
            reader = csv.reader(
                text,
                delimiter=self.delimiter,
                quotechar=self._quote,
                quoting=csv.QUOTE_MINIMAL if self._quote else csv.QUOTE_NONE,
            )
            try:
                for cells in reader:
                    yield reader.line_num, cells
            except csv.Error as problem:
                raise BadInput(too_long(self.path, reader.line_num)) from problem

    def place_of_row(self, row: int) -> str:
        """`row 3 (line 4)`: rows are counted without the header, lines as in an editor."""
        lines = islice(self.lines(), row + self.has_header, None) if self.is_text else iter(())
        return next((f"row {row + 1} (line {line})" for line, _ in lines), f"row {row + 1}")

    def check_size(self, disk: Disk) -> None:
        """Refuse a source with more rows than may be in memory; those of texts are estimated."""
        if self.table is None or not self.is_file:
            shortest = _SHORTEST_GZIP if self.path.suffix == ".gz" else _SHORTEST_ROW
            rows = self.path.stat().st_size // shortest
        else:
            with explained(self):
                rows = int(self.table.select(pl.len()).collect().item())
        if rows > disk.rows_at_once:
            raise BadInput(
                f"{self.name} has {'' if self.table is not None else 'up to '}{rows:,} rows, but "
                f"--memory allows {disk.rows_at_once:,} at once; split it into smaller files, or "
                "allow more memory"
            )

    def origin(self) -> dict[str, Any]:
        """The entry of the source in a manifest."""
        if self.table is not None and not self.is_file:
            rows = self.table.select(pl.len()).collect().item()
            return {"frame": self.name, "layout": self.layout.name, "rows": rows}
        with self.path.open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
        return {
            "file": self.path.name,
            "layout": self.layout.name,
            "bytes": self.path.stat().st_size,
            "sha256": digest,
        }


def id_text(column: str, dtype: pl.DataType) -> pl.Expr:
    """The text of each id; floats of parquet become whole numbers if they are: 7, not 7.0."""
    text = pl.col(column).cast(pl.String)
    if not dtype.is_float():
        return text
    whole = pl.col(column).cast(pl.Int64, strict=False)
    return pl.when(whole == pl.col(column)).then(whole.cast(pl.String)).otherwise(text)


def too_long(path: Path, number: int) -> str:
    """The error for a line that would fill the memory."""
    return (
        f"{path}, line {number}: a line or cell has more than {MAX_LINE:,} characters, which is "
        "no row of check-ins; export it again with one row per line"
    )


def open_text(path: Path, encoding: str, *, errors: str = "replace") -> IO[str]:
    """A text file, which may be compressed with gzip."""
    with path.open("rb") as raw:
        is_gzip = raw.read(2) == b"\x1f\x8b"
    if is_gzip:
        return gzip.open(path, "rt", encoding=encoding, newline="", errors=errors)
    return path.open("r", encoding=encoding, newline="", errors=errors)


@contextmanager
def explained(source: Source) -> Iterator[None]:
    """Raise BadInput with a sentence for errors of the reader."""
    try:
        yield
    except NoDataError as problem:
        raise BadInput(f"{source.name} has no rows; download or export it again") from problem
    except (EOFError, OSError, zlib.error) as problem:
        raise BadInput(unreadable(source.path, problem)) from problem
    except DAMAGED as problem:
        raise BadInput(f"{source.name}{_fault_of(source, problem)}") from problem


def _fault_of(source: Source, problem: BaseException) -> str:
    text = str(problem)
    if "utf-8" in text.lower():
        where = _where_not_text(source)
        return f"{where} is not UTF-8 text; use --encoding latin-1 if it is from an older system"
    if "more fields" not in text and (line := _line_of_odd_quote(source)):
        return (
            f", line {line}: a quote is opened and never closed; write a quote inside a cell "
            'twice ("") and close the others'
        )
    return (
        f" cannot be read: {brief(problem)}; export it again, or describe it with --format, "
        "--delimiter and --encoding"
    )


def unreadable(path: Path, problem: Exception) -> str:
    """The error for a file that cannot be opened, or ends too early."""
    if isinstance(problem, OSError) and problem.errno in (errno.EACCES, errno.EPERM):
        return f"{path} cannot be read: {problem.strerror}; ask its owner, or copy it"
    return f"{path} ends too early: the compressed file is incomplete; download or copy it again"


def _where_not_text(source: Source) -> str:
    for line, cells in source.lines():
        if any(NOT_TEXT in cell for cell in cells):
            return f", row {line - 1} (line {line})," if source.has_header else f", row {line},"
    return ""


def _line_of_odd_quote(source: Source) -> int | None:
    """The first line with an odd number of quotes, if quotes have a meaning."""
    if not (source.is_text and source.has_header):
        return None
    with open_text(source.path, source.encoding) as text:
        odd = (number for number, line in enumerate(text, start=1) if line.count('"') % 2)
        return next(odd, None)


def brief(problem: BaseException) -> str:
    """The first line of an error of a library."""
    return str(problem).strip().splitlines()[0][:160]
