"""The fingerprint depends on the content of the split and on nothing else."""

import hashlib
import struct
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castpoi.checkins import record
from castpoi.checkins.city import City, fingerprint_of
from castpoi.checkins.prepare import Preparation, make_city
from castpoi.checkins.split import SplitKind
from tests.cities import CAFE, OFFICE, PARK, small_city
from tests.sources import TABLE_HEADER, table

CITY = small_city(
    [
        (1, CAFE, "2012-04-03 08:00"),
        (1, OFFICE, "2012-04-03 09:00"),
        (1, CAFE, "2012-04-03 18:00"),
        (2, PARK, "2012-04-04 10:00"),
    ],
    ["train", "validation", "test", "left out"],
)


def fingerprint(city: City) -> str:
    return fingerprint_of(city.checkins, city.users, city.places, city.split)


def test_the_bytes_of_the_fingerprint_are_laid_out_by_hand() -> None:
    """The same bytes, packed number by number; a change of this test orphans every city."""
    content = b"castpoi split 1\n"

    def texts(words: list[str]) -> bytes:
        lengths = b"".join(struct.pack("<I", len(word.encode())) for word in words)
        return struct.pack("<Q", len(words)) + lengths + "".join(words).encode()

    def numbers(layout: str, values: list[int] | list[float]) -> bytes:
        packed = b"".join(struct.pack(layout, value) for value in values)
        return struct.pack("<Q", len(values)) + packed

    content += texts(["user 1", "user 2"])
    content += texts(["cafe", "office", "park", "station", "theatre"])
    content += texts(["Food", "Work", "Outdoors", "Travel", "Arts"])
    content += numbers("<d", CITY.places[record.LAT].to_list())
    content += numbers("<d", [-74.0] * 5)
    content += numbers("<I", [0, 0, 0, 1])
    content += numbers("<I", [CAFE, OFFICE, CAFE, PARK])
    instants = [datetime(2012, 4, 3, hour, tzinfo=UTC) for hour in (8, 9, 18)]
    instants.append(datetime(2012, 4, 4, 10, tzinfo=UTC))
    content += numbers("<q", [round(at.timestamp() * 1_000_000) for at in instants])
    content += numbers("<B", [0, 1, 2, 3])
    assert fingerprint(CITY) == hashlib.sha256(content).hexdigest()


def first_row(column: str, value: pl.Expr) -> pl.Expr:
    return pl.when(pl.int_range(pl.len()) == 0).then(value).otherwise(column).alias(column)


def change(table: str, column: pl.Expr) -> Callable[[City], City]:
    """A change of one column of a table."""
    return lambda city: replace(city, **{table: getattr(city, table).with_columns(column)})


A_MICROSECOND_LATER = pl.col(record.AT_UTC) + pl.duration(microseconds=1)
TEST = pl.lit("test", dtype=pl.Enum(record.PARTS))
MOVED_LETTERS = pl.Series(record.PLACE_ID, ["ca", "feoffice", *CITY.places[record.PLACE_ID][2:]])
CHANGES: dict[str, Callable[[City], City]] = {
    "instant": change("checkins", first_row(record.AT_UTC, A_MICROSECOND_LATER)),
    "place of a visit": change("checkins", first_row(record.PLACE, pl.lit(PARK, pl.UInt32))),
    "user of a visit": change("checkins", first_row(record.USER, pl.lit(1, pl.UInt32))),
    "latitude": change("places", first_row(record.LAT, pl.col(record.LAT) + 1e-9)),
    "longitude": change("places", first_row(record.LON, pl.lit(-73.9))),
    "part": change("split", first_row(record.PART, TEST)),
    "category": change("places", first_row(record.CATEGORY, pl.lit("Bar"))),
    "user id": change("users", first_row(record.USER_ID, pl.lit("user 0"))),
    "letters moved from one id to the next": change("places", pl.lit(MOVED_LETTERS)),
    "a check-in less": lambda c: replace(c, checkins=c.checkins[:3], split=c.split[:3]),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_one_change_of_content_changes_the_fingerprint(change: Callable[[City], City]) -> None:
    assert fingerprint(change(CITY)) != fingerprint(CITY)


def test_names_zones_and_offsets_do_not_change_the_fingerprint() -> None:
    places = CITY.places.with_columns(
        pl.lit("other").alias(record.NAME), pl.lit("Asia/Tokyo").alias(record.ZONE)
    )
    checkins = CITY.checkins.with_columns(pl.lit(0, dtype=pl.Int16).alias(record.OFFSET))
    assert fingerprint(replace(CITY, places=places, checkins=checkins)) == fingerprint(CITY)


def test_negative_zero_and_zero_have_the_same_fingerprint() -> None:
    north = replace(CITY, places=CITY.places.with_columns(pl.lit(0.0).alias(record.LAT)))
    south = replace(CITY, places=CITY.places.with_columns(pl.lit(-0.0).alias(record.LAT)))
    assert fingerprint(north) == fingerprint(south)


# From a table to the fingerprint

visits = st.tuples(
    st.sampled_from(["ann", "bob", "zoë ☕"]), st.integers(0, 4), st.integers(0, 400)
)
weeks = st.lists(visits, min_size=6, max_size=25, unique=True)
COORDINATES = [
    (40.7, -74.0),
    (40.71, -74.01),
    (40.123456789012345, -73.9),
    (40.8, -73.95),
    (41.0, -74.2),
]


def as_rows(week: list[tuple[str, int, int]]) -> list[list[str]]:
    """A table of a week in which every person begins at the first place, so that a split exists."""
    start = datetime(2012, 3, 1, tzinfo=UTC)
    people = sorted({user for user, _, _ in week})
    always = [(user, 0, hour) for user in people for hour in (500, 501, 502)]
    return [
        [
            *(user, f"p{place}", *map(repr, COORDINATES[place])),
            (start + timedelta(hours=hour)).strftime("%Y-%m-%dT%H:%M:%SZ"),
        ]
        for user, place, hour in [*week, *always]
    ]


def prepared(folder: str, sources: Mapping[str, str | pl.DataFrame], **options: object) -> str:
    """The fingerprint of a city made of named tables: texts, or frames for parquet."""
    paths = []
    for name, content in sources.items():
        path = Path(folder) / name
        if isinstance(content, pl.DataFrame):
            content.write_parquet(path)
        else:
            path.write_text(content)
        paths.append(path)
    return make_city(paths, Preparation(**options)).fingerprint  # type: ignore[arg-type]


@contextmanager
def machine_in(zone: str) -> Iterator[None]:
    """The time zone of the machine, as long as the block runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", zone)
        time.tzset()
        yield
    time.tzset()


@given(
    weeks, st.randoms(use_true_random=False), st.sampled_from(["leave-one-out", "chronological"])
)
@settings(max_examples=12, deadline=None)
def test_the_fingerprint_depends_on_no_row_order_format_file_or_machine_zone(
    week: list[tuple[str, int, int]], random: object, split: SplitKind
) -> None:
    rows = as_rows(week)
    shuffled = list(rows)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    half = len(shuffled) // 2
    frame = pl.DataFrame(
        [[*r[:2], float(r[2]), float(r[3]), datetime.fromisoformat(r[4])] for r in shuffled],
        schema=list(TABLE_HEADER),
        orient="row",
    )
    with tempfile.TemporaryDirectory() as folder:
        plain = prepared(folder, {"a.csv": table(rows)}, split=split)
        assert prepared(folder, {"a.csv": table(shuffled)}, split=split) == plain
        assert prepared(folder, {"a.parquet": frame}, split=split) == plain
        halves = {"a.csv": table(shuffled[:half]), "b.csv": table(shuffled[half:])}
        assert prepared(folder, halves, split=split) == plain
        with machine_in("Pacific/Apia"):
            assert prepared(folder, {"a.csv": table(rows)}, split=split) == plain
