"""Tables of check-ins in all their suffixes, types, ids and ways to write a time."""

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from castpoi.checkins import record
from castpoi.checkins.cleaning import NYC
from castpoi.checkins.prepare import Preparation, make_city
from castpoi.core.errors import BadRows
from tests.checkins.reading.conftest import CityOf
from tests.messages import refused
from tests.sources import (
    CALIFORNIA,
    NEW_YORK,
    TABLE_HEADER,
    TOKYO,
    checkins_in,
    checkins_of,
    local_hours_in,
    parts_in,
    table,
    table_rows,
    visits_in,
)

VISITS = visits_in(CALIFORNIA)
ROWS = table_rows(VISITS)
CHECKINS = checkins_of(VISITS)


def with_times(times: list[str], header: tuple[str, ...] = TABLE_HEADER) -> str:
    """The table with other texts for its times."""
    return table([[*row[:4], at] for row, at in zip(ROWS, times, strict=True)], header)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_brackets_in_a_file_name_are_not_a_pattern(city_of: CityOf, suffix: str) -> None:
    for visits in (VISITS[:-1], VISITS):
        text = table(table_rows(visits))
        name = "visits[1]" if visits is VISITS else "visits1"
        frame = pl.read_csv(text.encode(), infer_schema=False)
        city = city_of(text if suffix == "csv" else frame, f"{name}.{suffix}")
    assert checkins_in(city) == CHECKINS


@pytest.mark.parametrize("suffix", ["csv", "tsv", "txt", "csv.gz", "tsv.gz", "txt.gz"])
def test_a_text_table_may_have_any_of_the_suffixes(city_of: CityOf, suffix: str) -> None:
    content = table(ROWS, by="," if "csv" in suffix else "\t").encode()
    packed = gzip.compress(content) if suffix.endswith("gz") else content
    city = city_of(packed, f"visits.{suffix}")
    assert checkins_in(city) == CHECKINS
    assert city.manifest["sources"][0]["layout"] == "table"
    assert [city.manifest[key] for key in ("checkins", "users", "places")] == [15, 3, 4]
    assert parts_in(city) == {"train": 9, "validation": 3, "test": 3}


@pytest.mark.parametrize("encoding", [None, "latin-1"])
def test_columns_may_be_named_in_any_language(city_of: CityOf, encoding: str | None) -> None:
    content = table(ROWS, ("user", "straße", "lat", "lon", "time")).encode(encoding or "utf-8")
    city = city_of(content, columns={"place": "straße"}, encoding=encoding)
    assert checkins_in(city) == CHECKINS


def with_blanks(rows: list[list[str]]) -> str:
    return table([[*row[:2], *(f" {cell} " for cell in row[2:])] for row in rows])


def with_decimal_commas(rows: list[list[str]]) -> str:
    commas = [[f'"{cell}"'.replace(".", ",") for cell in row[2:4]] for row in rows]
    return table([[*r[:2], *point, r[4]] for r, point in zip(rows, commas, strict=True)])


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("\ufeff" + table(ROWS), id="byte order mark"),
        pytest.param(table(ROWS).replace("\n", "\r\n"), id="windows line ends"),
        pytest.param(table(ROWS).removesuffix("\n"), id="no last line end"),
        pytest.param(table(ROWS) + "\n\n", id="blank lines at the end"),
        pytest.param(table(ROWS).replace("\n", "\n\n"), id="blank lines between"),
        pytest.param(with_blanks(ROWS), id="blanks around numbers and times"),
        pytest.param(with_decimal_commas(ROWS), id="decimal commas"),
        pytest.param(table([["7", *r] for r in ROWS], ("row", *TABLE_HEADER)), id="column row"),
        pytest.param(table([["7", *r] for r in ROWS], ("", *TABLE_HEADER)), id="column unnamed"),
        pytest.param(table([[*r[:4], f'"{r[4]}"'] for r in ROWS]), id="quoted cells"),
    ],
)
def test_a_table_is_read_however_it_was_exported(city_of: CityOf, text: str) -> None:
    assert checkins_in(city_of(text)) == CHECKINS


def test_ids_with_spaces_and_emoji_are_kept(city_of: CityOf) -> None:
    names = {"12": "Zoë 👩‍🚀", "470": "ann  lee", "979": "名前"}
    city = city_of(table([[names[r[0]], f"☕ {r[1]}", *r[2:]] for r in ROWS]))
    assert set(city.users[record.USER_ID]) == set(names.values())
    assert set(city.places[record.PLACE_ID]) == {f"☕ {p.id}" for p in CALIFORNIA.places}


# Times


@pytest.mark.parametrize("unit", [1, 1000])
def test_epochs_are_read_from_text_in_seconds_and_milliseconds(city_of: CityOf, unit: int) -> None:
    city = city_of(with_times([str(int(v.at.timestamp()) * unit) for v in VISITS]))
    assert checkins_in(city) == CHECKINS


@pytest.mark.parametrize(
    "pattern",
    [
        "%Y-%m-%dT%H:%M:%SZ",
        "%Y-%m-%d %H:%M:%S+00:00",
        "%Y-%m-%d %H:%M:%S UTC",
        "%a %b %d %H:%M:%S +0000 %Y",
        "%Y-%m-%dT%H:%M:%S.000Z",
        "%Y-%m-%d %H:%M:%S+00",  # as PostgreSQL writes it
        "%Y-%m-%d %H:%M:%S.000000+00",
    ],
)
def test_times_with_an_offset_are_read(city_of: CityOf, pattern: str) -> None:
    assert checkins_in(city_of(with_times([v.at.strftime(pattern) for v in VISITS]))) == CHECKINS


@pytest.mark.parametrize(
    "pattern",
    ["%Y-%m-%d %H:%M:%S", "%Y/%m/%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%d.%m.%Y %H:%M:%S"],
)
def test_a_column_named_utc_needs_no_zone(city_of: CityOf, pattern: str) -> None:
    header = ("user", "poi", "lat", "lon", "utc_time")
    city = city_of(with_times([v.at.strftime(pattern) for v in VISITS], header))
    assert checkins_in(city) == CHECKINS
    assert city.manifest["naive_times"] == "utc"


def test_a_time_format_that_first_appears_late_in_the_file_is_read_too(city_of: CityOf) -> None:
    last = replace(VISITS[0], at=VISITS[0].at.replace(day=28))
    late = [*ROWS[0][:4], last.at.strftime("%a %b %d %H:%M:%S +0000 %Y")]
    # beyond the sample of 1000 rows
    assert checkins_in(city_of(table([*ROWS * 80, late]))) == checkins_of([*VISITS, last])


def test_local_times_become_instants_by_the_zone_of_their_place(city_of: CityOf) -> None:
    rows = [[*row[:4], f"{row[4][:10]} 10:00:00"] for row in table_rows(visits_in(TOKYO))]
    city = city_of(table(rows, ("user", "place", "lat", "lon", "local_time")))
    assert set(local_hours_in(city)) == {10}
    assert {at[11:13] for _, _, at in checkins_in(city)} == {"01"}


def test_a_zone_column_wins_over_coordinates_and_one_given_zone_over_all(city_of: CityOf) -> None:
    first = CALIFORNIA.places[0].id
    rows = [[*row, "Asia/Tokyo" if row[1] == first else ""] for row in ROWS]
    text = table(rows, (*TABLE_HEADER, "zone"))
    city = city_of(text)
    by_place = dict(city.places.select(record.PLACE_ID, record.ZONE).iter_rows())
    assert by_place.pop(first) == "Asia/Tokyo"
    assert set(by_place.values()) == {"America/Los_Angeles"}
    assert city.manifest["zone_rule"] == "zone column, else coordinates"
    city = city_of(text, zone="Europe/Paris")
    assert set(city.places[record.ZONE]) == {"Europe/Paris"}
    assert city.manifest["zone_rule"] == "one zone for all: Europe/Paris"


# Categories, names, coordinates


@pytest.mark.parametrize("blank", ["", " ", '""', '"  "'])
def test_a_blank_category_name_or_zone_is_none(city_of: CityOf, blank: str) -> None:
    header = (*TABLE_HEADER, "category", "name", "zone")
    city = city_of(table([[*r, blank, blank, blank] for r in ROWS], header))
    assert city.places[record.CATEGORY].to_list() == [None] * 4
    assert city.places[record.NAME].to_list() == [None] * 4
    assert set(city.places[record.ZONE]) == {"America/Los_Angeles"}


@pytest.mark.parametrize(("lat", "lon"), [("0", "32.5"), ("51.48", "0.0")])
def test_the_equator_and_the_meridian_of_greenwich_are_not_null_island(
    city_of: CityOf, lat: str, lon: str
) -> None:
    city = city_of(table([[*r[:2], lat, lon, r[4]] for r in ROWS]))
    assert city.places.select(record.LAT, record.LON).unique().rows() == [(float(lat), float(lon))]


def test_several_tables_make_one_city(tmp_path: Path) -> None:
    first, second = tmp_path / "a.csv", tmp_path / "b.parquet"
    first.write_text(table(ROWS[:7]))
    pl.read_csv(table(ROWS[7:]).encode()).write_parquet(second)
    city = make_city([first, second], Preparation())
    assert checkins_in(city) == CHECKINS
    assert [source["file"] for source in city.manifest["sources"]] == ["a.csv", "b.parquet"]


def test_a_split_and_trajectories_of_a_table_fit_the_recipe_of_the_paper(city_of: CityOf) -> None:
    parts = {"06": "VAL", "07": "Test"}
    visits = visits_in(NEW_YORK)
    rows = [[*r, parts.get(r[4][8:10], "Train"), f"{r[0]}_t1"] for r in table_rows(visits)]
    header = ("user", "poi", "lat", "lon", "utc_time", "split", "trajectory_id")
    city = city_of(table(rows, header), recipe=NYC)
    assert checkins_in(city) == checkins_of(visits)
    assert city.manifest["steps"][-1]["step"] == "unseen in the published train"


def test_the_manifest_records_how_the_city_was_made(city_of: CityOf) -> None:
    text = table([*ROWS, ROWS[0]])
    manifest = city_of(text).manifest
    digest = hashlib.sha256(text.encode()).hexdigest()
    source = {"file": "visits.csv", "layout": "table", "bytes": len(text), "sha256": digest}
    assert manifest["sources"] == [source]
    counts = [(s["step"], s["checkins_before"], s["checkins_after"]) for s in manifest["steps"]]
    assert counts == [("rows that are no check-ins", 16, 16), ("exact duplicates", 16, 15)]
    assert manifest["zone_rule"] == "coordinates of the place"
    assert manifest["split"] == "leave-one-out"
    assert set(manifest["versions"]) == {"castpoi", "polars", "zone_boundaries"}


# Typed tables (parquet)


def frame(**changed: object) -> pl.DataFrame:
    """The week as a typed table: ids are numbers, times are instants."""
    columns: dict[str, Any] = {
        "user": [int(v.user) for v in VISITS],
        "place": [int(v.place.id) for v in VISITS],
        "lat": [v.place.lat for v in VISITS],
        "lon": [v.place.lon for v in VISITS],
        "time": [v.at for v in VISITS],
    }
    return pl.DataFrame({**columns, **changed})


SECONDS = [int(v.at.timestamp()) for v in VISITS]
USERS = [v.user for v in VISITS]
INSTANTS = pl.Series([v.at for v in VISITS]).cast(pl.Datetime("ns", "UTC"))


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({}, id="int ids, instants in UTC"),
        pytest.param({"user": USERS, "place": [v.place.id for v in VISITS]}, id="string ids"),
        pytest.param({"user": pl.Series(USERS, dtype=pl.Categorical)}, id="categorical ids"),
        pytest.param({"user": [float(user) for user in USERS]}, id="float ids"),
        pytest.param(
            {"time": INSTANTS.dt.convert_time_zone("Asia/Kolkata")},
            id="instants in another zone, nanoseconds",
        ),
        pytest.param({"time": [r[4] for r in ROWS]}, id="times as text"),
        pytest.param({"time": SECONDS}, id="epoch seconds"),
        pytest.param({"time": [v.at.timestamp() for v in VISITS]}, id="epoch seconds, float"),
        pytest.param({"time": [second * 1000 for second in SECONDS]}, id="epoch ms"),
        pytest.param({"time": [second * 10**6 for second in SECONDS]}, id="epoch us"),
        pytest.param({"lat": [r[2] for r in ROWS]}, id="coordinates as text"),
        pytest.param({"lat": [f" {r[2]}" for r in ROWS]}, id="coordinates as text after blanks"),
        pytest.param({"time": [f"{r[4]} " for r in ROWS]}, id="times as text before blanks"),
        pytest.param({"notes": [["a", "b"]] * len(VISITS)}, id="a column of lists"),
    ],
)
def test_a_typed_table_is_read_whatever_its_types(
    city_of: CityOf, changed: Mapping[str, object]
) -> None:
    assert checkins_in(city_of(frame(**changed), "visits.parquet")) == CHECKINS


def test_naive_times_of_a_typed_table_need_a_meaning(city_of: CityOf) -> None:
    wall = pl.Series([v.at.replace(tzinfo=None) for v in VISITS], dtype=pl.Datetime("us"))
    naive = frame(time=wall)
    with refused(BadRows):
        city_of(naive, "visits.parquet")
    assert checkins_in(city_of(naive, "visits.parquet", naive_times="utc")) == CHECKINS
    assert set(local_hours_in(city_of(naive, "visits.parquet", naive_times="local"))) == {18}


# Ids


def test_ids_that_differ_only_in_blanks_are_one(city_of: CityOf) -> None:
    users = [f" {row[0]}\u00a0" if at % 2 else row[0] for at, row in enumerate(ROWS)]
    city = city_of(table([[user, *row[1:]] for user, row in zip(users, ROWS, strict=True)]))
    assert checkins_in(city) == CHECKINS
    assert city.manifest["remarks"] == ["blanks around 3 user ids were trimmed, in 7 rows"]


@pytest.mark.parametrize(
    "word", ["NULL", "null", "NaN", "nan", "None", "<NA>", r"\N", "", "  ", " NULL "]
)
@pytest.mark.parametrize(("column", "reason"), [(0, "no user"), (1, "no place")])
def test_a_word_for_nothing_is_a_missing_id(
    city_of: CityOf, word: str, column: int, reason: str
) -> None:
    bad = [word if at == column else cell for at, cell in enumerate(ROWS[0])]
    city = city_of(table([*ROWS, bad]), on_bad_rows="drop")
    assert city.manifest["dropped_rows"] == {reason: 1}
    assert city.manifest["remarks"] == []
    assert checkins_in(city) == CHECKINS
    assert city.dropped is not None
    assert city.dropped.row(0)[:3] == ("visits.csv", 16, reason)


@pytest.mark.parametrize(
    ("other", "cell", "word"), [("timestamp", "2001-01-01T00:00:00Z", "time"), ("LAT", "12", "lat")]
)
def test_a_remark_says_which_of_two_columns_was_read(
    city_of: CityOf, other: str, cell: str, word: str
) -> None:
    text = table([[*row, cell] for row in ROWS], (*TABLE_HEADER, other))
    city = city_of(text)
    assert checkins_in(city) == CHECKINS
    assert city.manifest["remarks"] == [
        f"visits.csv: the {word} is read from '{word}', not from '{other}'; "
        f"use --columns {word}={other} to change that"
    ]
    assert city_of(text, columns={word: word}).manifest["remarks"] == []
