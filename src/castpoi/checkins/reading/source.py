"""One file of check-ins: opened, recognised, and scanned row by row without loading it whole."""

import codecs
import csv
import errno
import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

import polars as pl
from polars.exceptions import NoDataError

from castpoi.checkins import record
from castpoi.checkins.reading.layout import (
    LAYOUTS,
    SUFFIXES,
    TABLE,
    Layout,
    files_of_folder,
    part_by_name,
    recognise_layout,
)
from castpoi.core.errors import BadInput, UnknownLayout
from castpoi.core.files import DAMAGED

_DELIMITERS: Final = {",": "a comma", "\t": "a tab", ";": "a semicolon", "|": "a bar"}
_NOT_TEXT: Final = "\ufffd"  # what stands in for bytes that an encoding does not know
_SAMPLE_LINES: Final = 1000
_MAX_LINE: Final = 1_000_000
"""No line of check-ins has more characters; a line without an end would fill the memory."""
csv.field_size_limit(_MAX_LINE)


@dataclass(frozen=True, kw_only=True)
class Source:
    """A file and how its rows are to be read."""

    path: Path
    layout: Layout
    delimiter: str
    encoding: str
    columns: tuple[str, ...]
    part: str | None
    """Part of a published split that the whole file belongs to."""

    @property
    def is_parquet(self) -> bool:
        """Whether the file is parquet, with types of its own."""
        return self.path.name.lower().endswith(".parquet")

    @property
    def has_header(self) -> bool:
        """Whether the first line names the columns."""
        return self.layout.header is None

    def scan(self, *, ragged: bool = False) -> pl.LazyFrame:
        """All rows with their number from 0; text columns stay text.

        `ragged` reads rows with too many cells too, cut to the width of the header.
        """
        if self.is_parquet:
            return pl.scan_parquet(self.path, glob=False).with_row_index(record.ROW)
        return pl.scan_csv(
            self.path if self.encoding == "utf-8" else self._transcoded(),
            separator=self.delimiter,
            has_header=self.has_header,
            new_columns=None if self.has_header else list(self.columns),
            infer_schema=False,
            quote_char='"' if self.has_header else None,
            truncate_ragged_lines=ragged,
            glob=False,
        ).with_row_index(record.ROW)

    def _transcoded(self) -> bytes:
        try:
            with _open_text(self.path, self.encoding, errors="strict") as text:
                return text.read().encode()
        except UnicodeDecodeError as problem:
            raise BadInput(
                f"{self.path}{_where_not_text(self)} is not {self.encoding} text; pass the "
                "--encoding that it was written with"
            ) from problem

    def lines(self) -> Iterator[tuple[int, list[str]]]:
        """(line number, cells) of every row, slowly: to find out what is wrong.

        Blank lines count, as they do in `scan`.
        """
        quote = '"' if self.has_header else None
        with _open_text(self.path, self.encoding) as text:
            reader = csv.reader(
                text,
                delimiter=self.delimiter,
                quotechar=quote,
                quoting=csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE,
            )
            try:
                for cells in reader:
                    yield reader.line_num, cells
            except csv.Error as problem:
                raise BadInput(_too_long(self.path, reader.line_num)) from problem

    def place_of_row(self, row: int) -> str:
        """`row 3 (line 4)`: rows are counted without the header, lines as an editor shows them."""
        if self.is_parquet:
            return f"row {row + 1}"
        first = 1 if self.has_header else 0
        for number, (line, _) in enumerate(self.lines()):
            if number == row + first:
                return f"row {row + 1} (line {line})"
        return f"row {row + 1}"


def open_sources(
    paths: list[Path], *, format_name: str, delimiter: str | None, encoding: str | None
) -> list[Source]:
    """Recognise every file; folders stand for the files of check-ins in them."""
    if encoding is not None:
        encoding = _known_encoding(encoding)
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = files_of_folder(path)
            if not inside:
                raise BadInput(
                    f"{path} holds no file that ends in {', '.join(SUFFIXES)}; name the files of "
                    "check-ins themselves"
                )
            files.extend(inside)
        else:
            files.append(path)
    return [_open(path, format_name, delimiter, encoding) for path in files]


def _known_encoding(encoding: str) -> str:
    """The one spelling of an encoding that we compare with."""
    try:
        return codecs.lookup(encoding).name
    except LookupError as problem:
        raise BadInput(
            f"--encoding '{encoding}' is not an encoding such as utf-8 or latin-1"
        ) from problem


def _open(path: Path, format_name: str, delimiter: str | None, encoding: str | None) -> Source:
    if not path.exists():
        raise BadInput(f"{path} does not exist; give a file or a folder of check-ins")
    if path.stat().st_size == 0:
        raise BadInput(f"{path} is empty (0 bytes); download or export it again")
    if path.name.lower().endswith(".parquet"):
        if format_name not in ("auto", TABLE.name):
            raise BadInput(f"{path} is parquet, not a {format_name} file; use --format table")
        return _open_parquet(path)
    first_line = _first_line(path, encoding)
    layout = LAYOUTS[format_name] if format_name != "auto" else recognise_layout(first_line)
    if layout is TABLE and not path.name.lower().endswith(SUFFIXES):
        raise UnknownLayout(
            f"{path} is none of the layouts castpoi knows: a table ends in "
            f"{', '.join(SUFFIXES)}; rename it, or name its layout with --format"
        )
    separator = delimiter or layout.delimiter or ("," if ".csv" in path.name.lower() else "\t")
    columns = layout.header or _header(path, first_line, separator)
    cells = first_line.rstrip("\r\n").split(separator)
    if layout.header and len(cells) != len(layout.header):
        raise BadInput(
            f"{path}, row 1: the {layout.name} layout has {len(layout.header)} columns parted by "
            f"{_in_words(separator)}, this file has {len(cells)}; read it with --format table"
        )
    return Source(
        path=path,
        layout=layout,
        delimiter=separator,
        encoding=encoding or layout.encoding,
        columns=columns,
        part=part_by_name(path) if layout.name in ("getnext", "sthgcn") else None,
    )


def _open_parquet(path: Path) -> Source:
    try:
        columns = tuple(pl.read_parquet_schema(path))
    except (*DAMAGED, OSError) as problem:
        raise BadInput(
            f"{path} is not a whole parquet file ({_brief(problem)}); export it again"
        ) from problem
    return Source(
        path=path, layout=TABLE, delimiter="", encoding="utf-8", columns=columns, part=None
    )


def _header(path: Path, first_line: str, delimiter: str) -> tuple[str, ...]:
    line = first_line.removeprefix("\ufeff").removeprefix("ï»¿").rstrip("\r\n")
    if delimiter not in line:
        other = max(_DELIMITERS, key=line.count)
        if other in line:
            raise BadInput(
                f"{path}, row 1: the columns are parted by {_DELIMITERS[other]}, but "
                f"{_in_words(delimiter)} is expected from the file's name; "
                f"pass --delimiter {other!r}"
            )
    cells = next(csv.reader([line], delimiter=delimiter), [])
    twice = sorted({cell for cell in cells if cells.count(cell) > 1})
    if twice:
        raise BadInput(f"{path}, row 1: column '{twice[0]}' stands there twice; rename one of them")
    return tuple(cells)


def _in_words(delimiter: str) -> str:
    return _DELIMITERS.get(delimiter, repr(delimiter))


def _first_line(path: Path, encoding: str | None) -> str:
    """The first line; where nobody says how it is written, as UTF-8 if it is that.

    The first lines are read too, so that one without an end is refused before polars reads it.
    """
    try:
        with _open_text(path, encoding or "utf-8") as text:
            line = text.readline(_MAX_LINE + 1)
            _check_length(path, 1, line)
            for number in range(2, _SAMPLE_LINES + 1):
                _check_length(path, number, text.readline(_MAX_LINE + 1))
        if encoding is None and _NOT_TEXT in line:
            return _first_line(path, "latin-1")
    except (EOFError, OSError, zlib.error) as problem:
        raise BadInput(_unreadable(path, problem)) from problem
    if "\0" in line:
        raise BadInput(f"{path} is not UTF-8 text but UTF-16 or binary; save it as UTF-8 text")
    if not line.strip():
        raise BadInput(f"{path} has no header: its first line is empty; name its columns there")
    if line.endswith("\r"):
        raise BadInput(f"{path}: its lines end in CR alone; save it with LF or CR LF line ends")
    return line


def _check_length(path: Path, number: int, line: str) -> None:
    if len(line) > _MAX_LINE:
        raise BadInput(_too_long(path, number))


def _too_long(path: Path, number: int) -> str:
    return (
        f"{path}, line {number}: a line or cell has more than {_MAX_LINE:,} characters, which no "
        "row of check-ins has; export it again with one row per line"
    )


def _open_text(path: Path, encoding: str, *, errors: str = "replace") -> IO[str]:
    with path.open("rb") as raw:
        is_gzip = raw.read(2) == b"\x1f\x8b"
    if is_gzip:
        return gzip.open(path, "rt", encoding=encoding, newline="", errors=errors)
    return path.open("r", encoding=encoding, newline="", errors=errors)


@contextmanager
def explained(source: Source) -> Iterator[None]:
    """Turn what the reader stumbles over into a sentence for a person."""
    path = source.path
    try:
        yield
    except NoDataError as problem:
        raise BadInput(f"{path} has no rows; download or export it again") from problem
    except (EOFError, OSError, zlib.error) as problem:
        raise BadInput(_unreadable(path, problem)) from problem
    except DAMAGED as problem:
        text = str(problem)
        if "utf-8" in text or "UTF-8" in text:
            raise BadInput(
                f"{path}{_where_not_text(source)} is not UTF-8 text; pass --encoding latin-1 if it "
                "comes from an older system"
            ) from problem
        if "more fields" not in text and (line := _line_of_odd_quote(source)):
            raise BadInput(
                f"{path}, line {line}: a quote opens and never closes; double a quote that stands "
                'inside a cell ("") and close the others'
            ) from problem
        raise BadInput(
            f"{path} cannot be read: {_brief(problem)}; export it again, or say what it is with "
            "--format, --delimiter and --encoding"
        ) from problem


def _unreadable(path: Path, problem: Exception) -> str:
    if isinstance(problem, OSError) and problem.errno in (errno.EACCES, errno.EPERM):
        return f"{path} may not be read: {problem.strerror}; ask its owner or copy it"
    return f"{path} ends too early: the compressed file was cut off; download or copy it again"


def _where_not_text(source: Source) -> str:
    for line, cells in source.lines():
        if any(_NOT_TEXT in cell for cell in cells):
            return f", row {line - 1} (line {line})," if source.has_header else f", row {line},"
    return ""


def _line_of_odd_quote(source: Source) -> int | None:
    """The first line with an odd number of quotes, where quotes have a meaning."""
    if source.is_parquet or not source.has_header:
        return None
    with _open_text(source.path, source.encoding) as text:
        odd = (number for number, line in enumerate(text, start=1) if line.count('"') % 2)
        return next(odd, None)


def _brief(problem: BaseException) -> str:
    return str(problem).strip().splitlines()[0][:160]
