"""The layouts in which check-ins are published, and the usual names of columns.

To add a layout, add a `Layout` to `LAYOUTS`. docs/data.md describes the files of each layout.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, NamedTuple, get_args

import polars as pl

from castpoi.checkins.reading.typed import SCANS
from castpoi.checkins.record import TEST, TRAIN, VALIDATION
from castpoi.core.errors import BadInput, UnknownLayout

NaiveTimes = Literal["utc", "local", "refuse"]
Word = Literal["user", "place", "lat", "lon", "time", "zone", "category", "name", "part", "session"]
NEEDED: Final[tuple[Word, ...]] = ("user", "place", "lat", "lon", "time")
NEEDED_OF_PLACES: Final[tuple[Word, ...]] = ("place", "lat", "lon")
WORDS_OF_PLACES: Final[tuple[Word, ...]] = (*NEEDED_OF_PLACES, "zone", "category", "name")
"""The columns that a places table may have."""

INTERACTIONS: Final = ".inter"
"""Suffix of RecBole's table of check-ins; the table of places next to it ends in `.item`."""
ITEMS: Final = ".item"
TEXT_SUFFIXES: Final = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz", INTERACTIONS)
SUFFIXES: Final = (*TEXT_SUFFIXES, *SCANS)
ENDINGS: Final = ".csv, .tsv, .txt, .parquet, .jsonl, .json, .geojson or .inter"
"""The usual suffixes, for errors."""

# Names are compared in lower case without spaces, dots, dashes and underscores; the best is first.
USUAL_NAMES: Final[Mapping[Word, tuple[str, ...]]] = {
    "user": ("user", "userid", "uid", "username", "personid", "person"),
    "place": (
        *("place", "placeid", "poi", "poiid", "venue", "venueid", "locationid", "locid"),
        *("location", "loc", "item", "itemid", "businessid", "spotid", "spot", "fsqplaceid"),
    ),
    "lat": ("lat", "latitude", "placelat", "y"),
    "lon": ("lon", "lng", "long", "longitude", "placelon", "x"),
    "time": (
        *("utctime", "atutc", "timeutc", "timestamputc", "time", "timestamp", "datetime", "at"),
        *("checkintime", "checkinat", "createdat", "visitedat", "date", "localtime", "epoch"),
    ),
    "zone": ("zone", "tz", "timezonename", "tzname", "ianazone"),
    "category": (
        *("category", "categoryname", "venuecategory", "venuecategoryname", "poicatname"),
        *("placecategory", "fsqcategorylabels", "categoriesprimary", "basiccategory"),
    ),
    "name": ("name", "placename", "venuename", "poiname", "title", "namesprimary"),
    "part": ("split", "part", "splittag"),
    "session": ("trajectoryid", "session", "sessionid", "trailid"),
}


def parse_columns(text: str, option: str = "--columns") -> dict[str, str]:
    """Read the value of an option such as --columns: `user=who,place=where`."""
    given: dict[str, str] = {}
    for pair in text.split(","):
        word, equals, column = (piece.strip() for piece in pair.partition("="))
        if not equals or not column:
            raise BadInput(f"{option}: '{pair}' is not of the form word=column")
        if word not in USUAL_NAMES:
            raise BadInput(f"{option}: '{word}' is not one of {', '.join(USUAL_NAMES)}")
        given[word] = column
    return given


class Conventions(NamedTuple):
    """How to read cells whose meaning the columns do not determine."""

    naive_times: NaiveTimes | None = None  # times without offset; None: not defined
    padding_place: str | None = None  # place id of padding rows, which are no check-ins


@dataclass(frozen=True, kw_only=True)
class Layout:
    """How the rows of one published layout are read."""

    name: str
    is_layout_of: Callable[[str], bool] = lambda _: False  # by the first line of a file
    delimiter: str | None = None  # None: by the suffix of the file
    encoding: str = "utf-8"
    header: tuple[str, ...] | None = None  # names of the columns, if there is no header line
    columns: Mapping[str, str] = field(default_factory=dict)  # fixed; a table has none
    conventions_of: Callable[[pl.DataFrame, str], Conventions] = lambda *_: Conventions()
    """Conventions by a sample of coordinates and the name of the file in errors."""
    is_cleaned: bool = False  # the published rows have been through the cleaning of the paper


def _has_columns(*names: str) -> Callable[[str], bool]:
    """Whether the first line is a header with these columns."""
    return lambda line: set(names) <= {cell.strip().strip('"') for cell in line.strip().split(",")}


def _is_tsmc2014(line: str) -> bool:
    cells = line.rstrip("\r\n").split("\t")
    time = r"[A-Z][a-z]{2} [A-Z][a-z]{2} \d{2} \d\d:\d\d:\d\d \+0000 \d{4}"
    return len(cells) == 8 and re.fullmatch(time, cells[7]) is not None


def _is_snap(line: str) -> bool:
    cells = line.rstrip("\r\n").split("\t")
    time = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
    is_blank = cells[1:] == [""] * 4  # Brightkite has check-ins without a place
    return len(cells) == 5 and (re.fullmatch(time, cells[1]) is not None or is_blank)


_BOXES: Final = {  # lat from, lat to, lon from, lon to
    "NYC": (40.0, 41.5, -75.0, -73.0),
    "TKY": (35.0, 36.5, 138.8, 140.9),
    "CA": (32.0, 42.5, -125.0, -113.5),
}


def _sthgcn_conventions(coordinates: pl.DataFrame, where: str) -> Conventions:
    """By the median of the coordinates: the wall clock is local in NYC and TKY and UTC in CA;
    place 0 is a place in NYC and padding in TKY and CA."""
    lat, lon = coordinates.select(pl.median("lat", "lon").fill_null(float("nan"))).row(0)
    for city, (south, north, west, east) in _BOXES.items():
        if south <= lat <= north and west <= lon <= east:
            return Conventions("utc" if city == "CA" else "local", None if city == "NYC" else "0")
    raise UnknownLayout(
        f"{where} has the STHGCN layout but is not in New York, Tokyo or California, so the "
        "meaning of its times is not known; read it with --format table --columns "
        "user=UserId,place=PoiId,lat=Latitude,lon=Longitude,time=UTCTimeOffset "
        "--naive-times local (or utc)"
    )


_AS_NAMED: Final[Mapping[str, str]] = {word: word for word in NEEDED}
TABLE: Final = Layout(name="table")
TSMC2014: Final = Layout(
    name="tsmc2014",
    is_layout_of=_is_tsmc2014,
    delimiter="\t",
    encoding="latin-1",
    header=("user", "place", "category_id", "category", "lat", "lon", "offset", "time"),
    columns={**_AS_NAMED, "category": "category"},
)
SNAP: Final = Layout(
    name="snap",
    is_layout_of=_is_snap,
    delimiter="\t",
    header=("user", "time", "lat", "lon", "place"),
    columns=_AS_NAMED,
)
GETNEXT: Final = Layout(
    name="getnext",
    is_layout_of=_has_columns("user_id", "POI_id", "UTC_time", "trajectory_id"),
    delimiter=",",
    columns=parse_columns(
        "user=user_id,place=POI_id,lat=latitude,lon=longitude,time=UTC_time,"
        "category=POI_catname,session=trajectory_id"
    ),
    conventions_of=lambda *_: Conventions("utc"),
)
STHGCN: Final = Layout(
    name="sthgcn",
    is_layout_of=_has_columns("UserId", "PoiId", "UTCTimeOffset", "pseudo_session_trajectory_id"),
    delimiter=",",
    columns=parse_columns(  # UTCTimeOffset is the wall clock; UTCTimeOffsetEpoch is wrong
        "user=UserId,place=PoiId,lat=Latitude,lon=Longitude,time=UTCTimeOffset,"
        "category=PoiCategoryName,session=pseudo_session_trajectory_id"
    ),
    conventions_of=_sthgcn_conventions,
    is_cleaned=True,
)
MASSIVE_STEPS: Final = Layout(
    name="massive-steps",
    is_layout_of=_has_columns("user_id", "venue_id", "timestamp", "trail_id"),
    delimiter=",",
    columns=parse_columns(
        "user=user_id,place=venue_id,lat=latitude,lon=longitude,time=timestamp,"
        "category=venue_category,name=name,session=trail_id"
    ),
    conventions_of=lambda *_: Conventions("local"),
)
LAYOUTS: Final = {
    layout.name: layout for layout in (TABLE, TSMC2014, SNAP, GETNEXT, STHGCN, MASSIVE_STEPS)
}
OPTIONAL_COLUMNS: Final = ("name",)  # columns of published layouts that some of their files lack


def recognise_layout(first_line: str) -> Layout:
    """The layout of a text file, by its first line; a table if it is no published layout."""
    published = (layout for layout in LAYOUTS.values() if layout.is_layout_of(first_line))
    return next(published, TABLE)


PART_NAMES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("train", "training"), TRAIN),
    **dict.fromkeys(("validation", "validate", "valid", "val", "dev"), VALIDATION),
    **dict.fromkeys(("test", "testing"), TEST),
}
"""Names in files and columns -> split."""


def part_by_name(path: Path) -> str | None:
    """The split of a file by its name: `NYC_train.csv`, `valid.parquet`."""
    words = re.split(r"[^a-z]+", path.name.lower())
    return next((PART_NAMES[word] for word in words if word in PART_NAMES), None)


def files_of_folder(folder: Path) -> list[Path]:
    """The files of check-ins in a folder; if it has a file for every split, only those files.

    STHGCN folders may have a split twice: last visits alone, and `*_with_traj` with all visits.
    """
    files = sorted(path for path in folder.iterdir() if path.name.lower().endswith(SUFFIXES))
    parts = {path: part for path in files if (part := part_by_name(path)) is not None}
    if set(parts.values()) != {TRAIN, VALIDATION, TEST}:
        return files
    complete = {part for path, part in parts.items() if "with_traj" in path.name}
    return [
        path for path, part in parts.items() if part not in complete or "with_traj" in path.name
    ]


def naive_times_by_column(column: str) -> NaiveTimes | None:
    """The meaning of naive times by the name of their column: `utc_time`, `local_time`."""
    words = set(re.split(r"[^a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", column).lower()))
    if words & {"utc", "gmt", "epoch"} or _plain(column) in ("utctime", "timeutc", "atutc"):
        return "utc"
    return "local" if "local" in words or _plain(column) == "localtime" else None


def untyped(columns: Sequence[str]) -> tuple[str, ...]:
    """The names without the types that RecBole gives all of them: `user_id:token`."""
    plain = [re.sub(r":(token|float)(_seq)?$", "", column) for column in columns]
    return tuple(columns if {*plain} & {*columns} else plain)


def _plain(column: str) -> str:
    """The name of a column in the form in which names are compared."""
    return "".join(letter for letter in column.lower() if letter not in " ._-\t\ufeff")


def usual_columns(columns: Sequence[str], word: Word) -> list[str]:
    """The columns with one of the usual names of a word, best first."""
    return [column for name in USUAL_NAMES[word] for column in columns if _plain(column) == name]


def column_of(columns: Sequence[str], word: Word) -> str | None:
    """The column with one of the usual names of a check-in field; None without one."""
    return next(iter(usual_columns(columns, word)), None)


def needed_column(columns: Sequence[str], word: Word, *, where: str, how_to_fix: str) -> str:
    """Like `column_of`, for a field that the table must have."""
    if found := column_of(columns, word):
        return found
    names = ", ".join(columns)
    raise BadInput(f"{where} has no column for the {word}; its columns are {names}; {how_to_fix}")


def recognise(
    columns: Sequence[str],
    given: Mapping[str, str],
    *,
    where: str,
    words: Sequence[Word] = get_args(Word),
    needed: Sequence[Word] = NEEDED,
    option: str = "--columns",
) -> dict[str, str]:
    """Word -> column of the table; a `given` column takes precedence over usual names.

    Raises:
        BadInput: a needed word has no column, or a given column does not exist.
    """
    names = ", ".join(columns)
    for word, column in given.items():
        if column not in columns:
            raise BadInput(
                f"{where}, row 1: no column '{column}' for the {word}; its columns are {names}"
                f"{_without_header(columns, option)}"
            )
        if word not in words:
            raise BadInput(f"{where}: the {word} is in another table; leave out {option} {word}=")
    usual = {word: usual_columns(columns, word)[:1] for word in words if word not in given}
    meaning: dict[str, str] = {word: given[word] for word in words if word in given}
    meaning |= {w: found[0] for w, found in usual.items() if {*found} - {*given.values()}}
    missing = [word for word in needed if word not in meaning]
    if missing:
        apart = {*missing} <= {"lat", "lon"} and "user" in needed
        raise BadInput(
            f"{where}, row 1: no column for the {' and the '.join(missing)}; its columns are "
            f"{names}; name it with {option} {','.join(f'{word}=COLUMN' for word in missing)}"
            f"{', or give a table of the places with --places-table' * apart}"
            f"{_without_header(columns, option)}"
        )
    return meaning


def _without_header(columns: Sequence[str], option: str) -> str:
    """A hint if the header has a number in it, so it is probably the first row."""
    if not any(re.fullmatch(r"-?\d+([.,]\d+)?", column.strip()) for column in columns):
        return ""
    if list(columns) == positions(len(columns)):
        return f" (by position: {option} place=2)"
    return "; if the file has no header, use --no-header, and number the columns from 1"


def positions(number: int) -> list[str]:
    """Names of the columns of a table without a header: 1, 2, 3."""
    return [str(position) for position in range(1, number + 1)]


def unused_columns(
    columns: Sequence[str], meaning: Mapping[str, str], given: Mapping[str, str]
) -> dict[str, str]:
    """Needed word that was not given -> another column with a usual name of it."""
    others = {
        word: [name for name in usual_columns(columns, word) if name not in meaning.values()]
        for word in NEEDED
        if word not in given
    }
    return {word: names[0] for word, names in others.items() if names}
