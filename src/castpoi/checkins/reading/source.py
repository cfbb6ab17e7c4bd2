"""One table of check-ins: a file that is recognised and scanned without loading all of it, or a
data frame."""

import codecs
import csv
import errno
import gzip
import hashlib
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, Final

import polars as pl
from polars.exceptions import NoDataError

from castpoi.checkins import record
from castpoi.checkins.reading.layouts import (
    LAYOUTS,
    SUFFIXES,
    TABLE,
    Layout,
    files_of_folder,
    part_by_name,
    positions,
    recognise_layout,
)
from castpoi.core.errors import BadInput, UnknownLayout
from castpoi.core.files import DAMAGED

_DELIMITERS: Final = {",": "a comma", "\t": "a tab", ";": "a semicolon", "|": "a bar"}
_NOT_TEXT: Final = "\ufffd"  # replaces bytes that are not in the encoding
PLACE_KEY: Final = "place of the places table"  # with spaces: clashes with no column of a table
_SAMPLE_LINES: Final = 1000
_MAX_LINE: Final = 1_000_000  # limit for one line in characters; a longer one could fill the memory
csv.field_size_limit(_MAX_LINE)


@dataclass(frozen=True, kw_only=True)
class Source:
    """A table of check-ins, and how its rows are read."""

    name: str  # in errors: the path of a file
    columns: tuple[str, ...]
    layout: Layout = TABLE
    frame: pl.DataFrame | None = None  # None: a file
    delimiter: str | None = None  # None: the columns have types (parquet, frame)
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
        return self.delimiter is not None

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
        if self.frame is not None:
            rows = self.frame.lazy()
        elif self.delimiter is None:
            rows = pl.scan_parquet(self.path, glob=False)
        else:
            rows = pl.scan_csv(
                self.path if self.encoding == "utf-8" else self._transcoded(),
                separator=self.delimiter,
                has_header=self.has_header,
                new_columns=None if self.has_header else list(self.columns),
                infer_schema=False,
                quote_char=self._quote,
                truncate_ragged_lines=ragged,
                glob=False,
            )
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

    def _transcoded(self) -> bytes:
        try:
            with _open_text(self.path, self.encoding, errors="strict") as text:
                return text.read().encode()
        except UnicodeDecodeError as problem:
            raise BadInput(
                f"{self.name}{_where_not_text(self)} is not {self.encoding} text; set "
                "--encoding to the one that it was written with"
            ) from problem

    def lines(self) -> Iterator[tuple[int, list[str]]]:
        """(line number, cells) of every row, blank lines included; slow, only for errors."""
        with _open_text(self.path, self.encoding) as text:
            reader = csv.reader(
                text,
                delimiter=self.delimiter or ",",
                quotechar=self._quote,
                quoting=csv.QUOTE_MINIMAL if self._quote else csv.QUOTE_NONE,
            )
            try:
                for cells in reader:
                    yield reader.line_num, cells
            except csv.Error as problem:
                raise BadInput(_too_long(self.path, reader.line_num)) from problem

    def place_of_row(self, row: int) -> str:
        """`row 3 (line 4)`: rows are counted without the header, lines as in an editor."""
        lines = islice(self.lines(), row + self.has_header, None) if self.is_text else iter(())
        return next((f"row {row + 1} (line {line})" for line, _ in lines), f"row {row + 1}")

    def origin(self) -> dict[str, Any]:
        """The entry of the source in a manifest."""
        if self.frame is not None:
            return {"frame": self.name, "layout": self.layout.name, "rows": self.frame.height}
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


def open_sources(
    tables: Sequence[Path | pl.DataFrame],
    *,
    format_name: str,
    delimiter: str | None,
    encoding: str | None,
    no_header: bool = False,
    what: str = "data frame",
) -> list[Source]:
    """Recognise every file and frame; a folder means the files of check-ins in it."""
    if encoding is not None:
        encoding = _known_encoding(encoding)
    sources = []
    for table in tables:
        if isinstance(table, Path):
            sources += [
                _open(file, format_name, delimiter, encoding, no_header=no_header)
                for file in _files_at(table)
            ]
        else:
            name = f"{what} {len(sources) + 1}"
            sources.append(Source(name=name, frame=table, columns=tuple(table.columns)))
    return sources


def _known_encoding(encoding: str) -> str:
    """The standard name of an encoding."""
    try:
        return codecs.lookup(encoding).name
    except LookupError as problem:
        raise BadInput(
            f"--encoding '{encoding}' is not an encoding such as utf-8 or latin-1"
        ) from problem


def _files_at(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = files_of_folder(path)
    if not files:
        raise BadInput(
            f"{path} has no file that ends in {', '.join(SUFFIXES)}; give the files themselves"
        )
    return files


def _open(
    path: Path, format_name: str, delimiter: str | None, encoding: str | None, *, no_header: bool
) -> Source:
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
    if format_name == "auto" and layout is TABLE and not path.name.lower().endswith(SUFFIXES):
        raise UnknownLayout(
            f"{path}: its format is not recognised; if it is a table of text, use --format table "
            f"(the name of a table usually ends in {', '.join(SUFFIXES)})"
        )
    separator = delimiter or layout.delimiter
    remarks: tuple[str, ...] = ()
    if separator is None:
        separator, remarks = _delimiter_of(path, first_line, no_header=no_header)
    cells = first_line.rstrip("\r\n").split(separator)
    if layout.header and len(cells) != len(layout.header):
        raise BadInput(
            f"{path}, row 1: the {layout.name} layout has {len(layout.header)} columns separated "
            f"by {_in_words(separator)}, this file has {len(cells)}; read it with --format table"
        )
    if no_header and layout is TABLE:
        width = len(next(csv.reader([first_line], delimiter=separator), []))
        layout = replace(TABLE, header=tuple(positions(width)))
    return Source(
        name=str(path),
        layout=layout,
        delimiter=separator,
        encoding=encoding or layout.encoding,
        columns=layout.header or _header(path, first_line, separator),
        part=part_by_name(path) if layout.has_parts else None,
        remarks=remarks,
    )


def _delimiter_of(path: Path, first_line: str, *, no_header: bool) -> tuple[str, tuple[str, ...]]:
    """(delimiter, remarks): by the suffix of the file if its first line has that one."""
    name = path.name.lower()
    found = max(_DELIMITERS, key=first_line.count)
    if no_header and found not in first_line:
        found = " "  # names of columns may have spaces
    if not name.endswith(SUFFIXES):
        return found, ()
    usual = "," if ".csv" in name else "\t"
    if usual in first_line or found not in first_line:
        return usual, ()
    return found, (f"{path.name}: the columns are separated by {_in_words(found)}",)


def _open_parquet(path: Path) -> Source:
    try:
        return Source(name=str(path), columns=tuple(pl.read_parquet_schema(path)))
    except (*DAMAGED, OSError) as problem:
        raise BadInput(
            f"{path} is not a complete parquet file ({_brief(problem)}); export it again"
        ) from problem


def _header(path: Path, first_line: str, delimiter: str) -> tuple[str, ...]:
    line = first_line.removeprefix("\ufeff").removeprefix("ï»¿").rstrip("\r\n")
    other = max(_DELIMITERS, key=line.count)
    if delimiter not in line and other in line:
        raise BadInput(
            f"{path}, row 1: the columns are separated by {_in_words(other)}, but the file should "
            f"have {_in_words(delimiter)}; use --delimiter {other!r}"
        )
    cells = next(csv.reader([line], delimiter=delimiter), [])
    twice = sorted({cell for cell in cells if cells.count(cell) > 1})
    if twice:
        raise BadInput(
            f"{path}, row 1: two columns are named '{twice[0]}'; rename one of them, or use "
            "--no-header if that is the first row"
        )
    return tuple(cells)


def _in_words(delimiter: str) -> str:
    return {" ": "a space", **_DELIMITERS}.get(delimiter, repr(delimiter))


def _first_line(path: Path, encoding: str | None) -> str:
    """The first line; without an encoding, as UTF-8 if it is that, otherwise as latin-1.

    The next lines are checked too, so that polars does not read a line without an end.
    """
    try:
        with _open_text(path, encoding or "utf-8") as text:
            line = text.readline(_MAX_LINE + 1)
            following = islice(iter(lambda: text.readline(_MAX_LINE + 1), ""), _SAMPLE_LINES)
            for number, each in enumerate(chain([line], following), start=1):
                if len(each) > _MAX_LINE:
                    raise BadInput(_too_long(path, number))
    except (EOFError, OSError, zlib.error) as problem:
        raise BadInput(_unreadable(path, problem)) from problem
    if encoding is None and _NOT_TEXT in line:
        return _first_line(path, "latin-1")
    if "\0" in line:
        raise BadInput(f"{path} is UTF-16 or binary, not UTF-8 text; save it as UTF-8 text")
    if not line.strip():
        raise BadInput(f"{path} has no header: its first line is empty; write the columns there")
    if line.endswith("\r"):
        raise BadInput(f"{path}: its lines end in CR alone; save it with LF or CR LF line ends")
    return line


def _too_long(path: Path, number: int) -> str:
    return (
        f"{path}, line {number}: a line or cell has more than {_MAX_LINE:,} characters, which is "
        "no row of check-ins; export it again with one row per line"
    )


def _open_text(path: Path, encoding: str, *, errors: str = "replace") -> IO[str]:
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
        raise BadInput(_unreadable(source.path, problem)) from problem
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
        f" cannot be read: {_brief(problem)}; export it again, or describe it with --format, "
        "--delimiter and --encoding"
    )


def _unreadable(path: Path, problem: Exception) -> str:
    if isinstance(problem, OSError) and problem.errno in (errno.EACCES, errno.EPERM):
        return f"{path} cannot be read: {problem.strerror}; ask its owner, or copy it"
    return f"{path} ends too early: the compressed file is incomplete; download or copy it again"


def _where_not_text(source: Source) -> str:
    for line, cells in source.lines():
        if any(_NOT_TEXT in cell for cell in cells):
            return f", row {line - 1} (line {line})," if source.has_header else f", row {line},"
    return ""


def _line_of_odd_quote(source: Source) -> int | None:
    """The first line with an odd number of quotes, if quotes have a meaning."""
    if not (source.is_text and source.has_header):
        return None
    with _open_text(source.path, source.encoding) as text:
        odd = (number for number, line in enumerate(text, start=1) if line.count('"') % 2)
        return next(odd, None)


def _brief(problem: BaseException) -> str:
    return str(problem).strip().splitlines()[0][:160]
