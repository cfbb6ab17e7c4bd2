"""Odd and bad tables, each a small change of one plain table of fifteen check-ins.

Tables of `_same` must get the fingerprint of the plain table; those of `_refused` an error.
"""

import bz2
import gzip
import io
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import polars as pl
from tests.sources import NEW_YORK, TABLE_HEADER, table, table_rows, visits_in

Rows = list[list[str]]
Columns = Mapping[str, object]

VISITS: Final = visits_in(NEW_YORK)
ROWS: Final = table_rows(VISITS)
_USER, _PLACE, _LAT, _LON, _TIME = range(5)
_MEGABYTE: Final = b"0" * 1_000_000


@dataclass(frozen=True, kw_only=True)
class OddTable:
    """An input file of `castpoi data prepare`."""

    name: str
    content: Callable[[], bytes]
    """Creates the content when it is needed: some are large."""
    is_same: bool
    """Whether it has the content of the plain table; if not, it must be refused."""
    ending: str = "csv"
    options: tuple[str, ...] = ()


def plain() -> bytes:
    """The table that the others are compared with."""
    return table(ROWS).encode()


def odd_tables() -> Iterator[OddTable]:
    """All odd and bad tables."""
    yield from _written_otherwise()
    yield from _columns()
    yield from _times()
    yield from _cells()
    yield from _packed()
    yield from _broken_files()
    yield from _parquet()


def _same(name: str, content: bytes, *options: str, ending: str = "csv") -> OddTable:
    return OddTable(
        name=name, content=lambda: content, is_same=True, ending=ending, options=options
    )


def _refused(name: str, content: bytes, *options: str, ending: str = "csv") -> OddTable:
    return OddTable(
        name=name, content=lambda: content, is_same=False, ending=ending, options=options
    )


def _written_otherwise() -> Iterator[OddTable]:
    text = table(ROWS)
    for name, by in (("tab", "\t"), ("semicolon", ";"), ("bar", "|")):
        yield _same(f"delimiter {name}", table(ROWS, by=by).encode(), "--delimiter", by)
    quoted = [[f'"{cell}"' for cell in row] for row in ROWS]
    yield _same("all cells quoted", table(quoted).encode())
    yield _same("rows in reverse order", table(ROWS[::-1]).encode())
    yield _same("every row twice", table([*ROWS, *ROWS]).encode())
    yield _same("no newline at the end", text.rstrip("\n").encode())
    yield _same("CRLF", text.replace("\n", "\r\n").encode())
    yield _same("byte order mark", b"\xef\xbb\xbf" + text.encode())
    yield _same("blank lines at the end", text.encode() + b"\n\n\n")
    yield _same(
        "blanks around ids", table([[f" {r[0]} ", f" {r[1]}", *r[2:]] for r in ROWS]).encode()
    )
    yield _refused("CR only", text.replace("\n", "\r").encode())
    yield _refused("UTF-16", text.encode("utf-16"))
    yield _refused("UTF-32", text.encode("utf-32"))
    yield _refused("delimiter of two characters", table(ROWS, by="::").encode())


def _columns() -> Iterator[OddTable]:
    for names in (
        ("uid", "poi", "latitude", "longitude", "timestamp"),
        ("user_id", "venue_id", "Lat", "Lon", "utc_time"),
        ("USER", "PLACE", "LAT", "LON", "TIME"),
    ):
        yield _same(f"columns {names[0]}, {names[1]}", table(ROWS, names).encode())
    turned = [row[::-1] for row in ROWS]
    yield _same("columns in reverse order", table(turned, TABLE_HEADER[::-1]).encode())
    more = [[*row, "x"] for row in ROWS]
    yield _same("a column more", table(more, (*TABLE_HEADER, "remark")).encode())
    mapped = ("--columns", "user=a,place=b,lat=c,lon=d,time=e")
    yield _same("unusual names, mapped", table(ROWS, tuple("abcde")).encode(), *mapped)
    yield _refused("unusual names", table(ROWS, tuple("abcde")).encode())
    for number, name in enumerate(TABLE_HEADER):
        rows = [[cell for at, cell in enumerate(row) if at != number] for row in ROWS]
        header = [each for each in TABLE_HEADER if each != name]
        yield _refused(f"no column {name}", table(rows, header).encode())
    yield _refused("a header and no rows", table([]).encode())
    yield _refused("no header", table(ROWS[1:], ROWS[0]).encode())
    yield _refused(
        "one user column twice", table(ROWS, ("user", "user", *TABLE_HEADER[2:])).encode()
    )
    yield _refused("one row with a cell more", table([*ROWS, [*ROWS[0], "x"]]).encode())
    yield _refused("one row cut off", table(ROWS).encode() + b"12,49bb")


def _times() -> Iterator[OddTable]:
    for name, written in _EQUAL_TIMES.items():
        rows = [[*row[:_TIME], written(each.at)] for row, each in zip(ROWS, VISITS, strict=True)]
        yield _same(f"times {name}", table(rows).encode())
    for name, time in _BAD_TIMES.items():
        yield _refused(f"one time {name}", table(_with(_TIME, time)).encode())
    local = [[*row[:_TIME], row[_TIME].rstrip("Z")] for row in ROWS]
    yield _refused("times without an offset", table(local).encode())
    yield _same(
        "times without an offset, declared UTC", table(local).encode(), "--naive-times", "utc"
    )


_EQUAL_TIMES: Final[dict[str, Callable[[datetime], str]]] = {
    "with a blank": lambda at: f"{at:%Y-%m-%d %H:%M:%S}Z",
    "with +00:00": lambda at: at.isoformat(),
    "with fractions": lambda at: f"{at:%Y-%m-%dT%H:%M:%S}.000Z",
    "in seconds": lambda at: f"{at.timestamp():.0f}",
    "in milliseconds": lambda at: f"{1000 * at.timestamp():.0f}",
    "in microseconds": lambda at: f"{1_000_000 * at.timestamp():.0f}",
}
_BAD_TIMES: Final = {
    "empty": "",
    "in words": "yesterday",
    "of 1970": "1970-01-01T00:00:00Z",
    "of 2150": "2150-01-01T00:00:00Z",
    "of year 99999": "99999-01-01T00:00:00Z",
    "on 30 February": "2012-02-30T10:00:00Z",
    "at 25:00": "2012-04-03T25:00:00Z",
    "zero": "0",
    "enormous": "9" * 30,
}


def _cells() -> Iterator[OddTable]:
    for column, cells in _BAD_CELLS.items():
        for cell in cells:
            name = f"one {TABLE_HEADER[column]} {cell[:12]!r}"
            yield _refused(name, table(_with(column, cell)).encode())
    yield _refused("every coordinate 0", table([[*r[:2], "0", "0", r[4]] for r in ROWS]).encode())
    swapped = [[row[_USER], row[_PLACE], row[_LON], row[_LAT], row[_TIME]] for row in ROWS]
    yield _refused("coordinates swapped", table(swapped).encode())
    yield _refused("one place at both poles", table(
        [*ROWS, ["12", ROWS[0][_PLACE], "89", "0", ROWS[0][_TIME]],
         ["12", ROWS[0][_PLACE], "-89", "0", ROWS[1][_TIME]]]).encode())  # fmt: skip
    yield _refused("one user of one check-in", table(ROWS[:1]).encode())


_BAD_CELLS: Final = {
    _USER: ("", "   ", "NULL", "NaN", "None", "\\N"),
    _PLACE: ("", "null", "<NA>"),
    _LAT: ("", "91", "-90.5", "nan", "inf", "1e400", "north", "40,7", "0x28"),
    _LON: ("", "181", "-180.5", "nan", "-inf", "west"),
}


def _packed() -> Iterator[OddTable]:
    packed = gzip.compress(plain())
    yield _same("gzip", packed, ending="csv.gz")
    yield _same(
        "gzip of two members",
        gzip.compress(plain()[:200]) + gzip.compress(plain()[200:]),
        ending="csv.gz",
    )
    yield _refused("gzip cut off", packed[:-20], ending="csv.gz")
    yield _refused("gzip with a flipped byte", packed[:60] + b"\x00" + packed[61:], ending="csv.gz")
    yield _refused("gzip of nothing", gzip.compress(b""), ending="csv.gz")
    yield _same("gzip called csv", packed)
    yield _refused("bzip2", bz2.compress(plain()), ending="csv.bz2")
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as folder:
        folder.writestr("checkins.csv", plain())
    yield _refused("zip", archive.getvalue(), ending="zip")
    yield _refused("zip called csv", archive.getvalue())


def _broken_files() -> Iterator[OddTable]:
    for name, content in (
        ("empty file", b""),
        ("one newline", b"\n"),
        ("blanks", b" " * 100),
        ("NUL bytes", bytes(1000)),
        ("random bytes", bytes(range(256)) * 20),
        ("an HTML page", b"<!DOCTYPE html><html><body><p>404</p></body></html>\n"),
        ("JSON", b'{"user": "a", "place": "b"}\n'),
        ("a PNG", b"\x89PNG\r\n\x1a\n" + bytes(100)),
        ("NUL in a cell", plain().replace(b"12,49bb", b"12,49\x00bb", 1)),
        ("an open quote", plain() + b'12,"49bb,40.7,-74.0,2012-04-03T18:00:09Z\n' * 3),
    ):
        yield _refused(name, content)
    yield OddTable(name="an endless line", content=lambda: 100 * _MEGABYTE, is_same=False)
    yield OddTable(
        name="an endless line, gzip", ending="csv.gz", is_same=False,
        content=lambda: gzip.compress(300 * _MEGABYTE, 1),
    )  # fmt: skip
    yield OddTable(
        name="an endless cell", is_same=False,
        content=lambda: plain() + b"12," + 30 * _MEGABYTE + b",40.7,-74.0,2012-04-03T18:00:09Z\n",
    )  # fmt: skip


def _parquet() -> Iterator[OddTable]:
    columns = list(zip(*ROWS, strict=True))
    texts = dict(zip(TABLE_HEADER, columns, strict=True))
    at = [visit.at for visit in VISITS]
    numbers = {
        "lat": [float(each) for each in columns[_LAT]],
        "lon": [float(each) for each in columns[_LON]],
    }
    same: list[tuple[str, Columns]] = [
        ("of texts", {}),
        ("with floats", numbers),
        ("with instants", {**numbers, "time": pl.Series(at, dtype=pl.Datetime("us", "UTC"))}),
        ("with nanoseconds", {**numbers, "time": pl.Series(at, dtype=pl.Datetime("ns", "UTC"))}),
        ("with integer users", {**numbers, "user": [int(each) for each in columns[_USER]]}),
        ("with categories", {**numbers, "place": pl.Series(columns[_PLACE], dtype=pl.Categorical)}),
        ("with epoch seconds", {**numbers, "time": [int(each.timestamp()) for each in at]}),
    ]
    for name, changes in same:
        yield _same(f"parquet {name}", _written({**texts, **changes}), ending="parquet")
    bad: list[tuple[str, Columns]] = [
        ("with lists", {"lat": [[each] for each in numbers["lat"]]}),
        ("with structs", {"place": [{"id": each} for each in columns[_PLACE]]}),
        ("with booleans", {"time": [True] * len(at)}),
        ("with null users", {"user": [None] * len(at)}),
        ("with naive instants", {"time": pl.Series([each.replace(tzinfo=None) for each in at])}),
        ("with dates", {"time": pl.Series([each.date() for each in at])}),
        ("with NaN", {"lat": [float("nan"), *numbers["lat"][1:]], "lon": numbers["lon"]}),
        ("with binary ids", {"user": [each.encode() for each in columns[_USER]]}),
    ]
    for name, changes in bad:
        yield _refused(f"parquet {name}", _written({**texts, **changes}), ending="parquet")
    whole = _written(texts)
    yield _refused("parquet cut off", whole[: len(whole) // 2], ending="parquet")
    yield _refused("parquet without its head", whole[8:], ending="parquet")
    yield _refused(
        "parquet with a broken foot", whole[:-30] + bytes(22) + whole[-8:], ending="parquet"
    )
    yield _refused("text called parquet", plain(), ending="parquet")
    yield _refused("parquet called csv", whole)


def _written(columns: Columns) -> bytes:
    content = io.BytesIO()
    pl.DataFrame(columns).write_parquet(content)
    return content.getvalue()


def _with(column: int, cell: str) -> Rows:
    """The plain rows, with one cell of the third row changed."""
    changed = [list(row) for row in ROWS]
    changed[2][column] = f'"{cell}"' if "," in cell else cell
    return changed
