"""Opens files and data frames as sources: recognises layout, columns and delimiter."""

import codecs
import csv
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Final

import polars as pl

from castpoi.checkins.reading.layouts import (
    ENDINGS,
    INTERACTIONS,
    ITEMS,
    LAYOUTS,
    SUFFIXES,
    TABLE,
    column_of,
    files_of_folder,
    part_by_name,
    positions,
    recognise_layout,
    untyped,
)
from castpoi.checkins.reading.source import (
    MAX_LINE,
    NOT_TEXT,
    Source,
    brief,
    open_text,
    too_long,
    unreadable,
)
from castpoi.checkins.reading.typed import flat, scan_by_suffix
from castpoi.core.errors import BadInput, UnknownLayout
from castpoi.core.files import DAMAGED

_DELIMITERS: Final = {",": "a comma", "\t": "a tab", ";": "a semicolon", "|": "a bar"}
_SAMPLE_LINES: Final = 1000


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
            sources.append(_typed(name, flat(table.lazy()), is_file=False))
    return sources


def _typed(name: str, table: pl.LazyFrame, *, is_file: bool = True) -> Source:
    columns = tuple(table.collect_schema())
    part = part_by_name(Path(name)) if is_file else None
    return Source(name=name, table=table, columns=columns, is_file=is_file, part=part)


def items_of(source: Source) -> Path | None:
    """The `.item` file next to an `.inter` file of RecBole that has no coordinates."""
    path = source.path
    if not source.is_file or path.suffix != INTERACTIONS or column_of(source.columns, "lat"):
        return None
    items = path.with_suffix(ITEMS)
    return items if items.is_file() else None


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
        raise BadInput(f"{path} has no file that ends in {ENDINGS}; give the files themselves")
    return files


def _open(
    path: Path, format_name: str, delimiter: str | None, encoding: str | None, *, no_header: bool
) -> Source:
    if not path.exists():
        raise BadInput(f"{path} does not exist; give a file or a folder of check-ins")
    if path.stat().st_size == 0:
        raise BadInput(f"{path} is empty (0 bytes); download or export it again")
    if scan := scan_by_suffix(path):
        if format_name not in ("auto", TABLE.name):
            raise BadInput(f"{path} is no {format_name} file; read it with --format table")
        return _open_typed(path, scan)
    first_line = _first_line(path, encoding)
    layout = LAYOUTS[format_name] if format_name != "auto" else recognise_layout(first_line)
    if format_name == "auto" and layout is TABLE and not path.name.lower().endswith(SUFFIXES):
        raise UnknownLayout(
            f"{path}: its format is not recognised; if it is a table of text, use --format table "
            f"(the name of a table usually ends in {ENDINGS})"
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
        part=part_by_name(path),
        remarks=remarks,
    )


def _delimiter_of(path: Path, first_line: str, *, no_header: bool) -> tuple[str, tuple[str, ...]]:
    """(delimiter, remarks): that of the suffix if the first line has it, else the most frequent."""
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


def _open_typed(path: Path, scan: Callable[[Path], pl.LazyFrame]) -> Source:
    try:
        return _typed(str(path), scan(path))
    except (*DAMAGED, OSError) as problem:
        kind = path.name.lower().removesuffix(".gz").rpartition(".")[2]
        raise BadInput(
            f"{path} is not a complete {kind} file ({brief(problem)}); export it again"
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
    return untyped(cells)


def _in_words(delimiter: str) -> str:
    return {" ": "a space", **_DELIMITERS}.get(delimiter, repr(delimiter))


def _first_line(path: Path, encoding: str | None) -> str:
    """The first line; without an encoding, as UTF-8 if it is valid, otherwise as latin-1.

    The length of the next lines is checked too, so that polars never reads an endless line.
    """
    try:
        with open_text(path, encoding or "utf-8") as text:
            line = text.readline(MAX_LINE + 1)
            following = islice(iter(lambda: text.readline(MAX_LINE + 1), ""), _SAMPLE_LINES)
            for number, each in enumerate(chain([line], following), start=1):
                if len(each) > MAX_LINE:
                    raise BadInput(too_long(path, number))
    except (EOFError, OSError, zlib.error) as problem:
        raise BadInput(unreadable(path, problem)) from problem
    if encoding is None and NOT_TEXT in line:
        return _first_line(path, "latin-1")
    if "\0" in line:
        raise BadInput(f"{path} is UTF-16 or binary, not UTF-8 text; save it as UTF-8 text")
    if not line.strip():
        raise BadInput(f"{path} has no header: its first line is empty; write the columns there")
    if line.endswith("\r"):
        raise BadInput(f"{path}: its lines end in CR alone; save it with LF or CR LF line ends")
    return line
