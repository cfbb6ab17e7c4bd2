"""The generic table in all its endings, types and column names."""

import gzip
import hashlib
from dataclasses import replace
from datetime import timedelta, timezone
from pathlib import Path

import polars as pl
import pytest

from castpoi.checkins import record
from castpoi.checkins.city import City
from tests.checkins.reading.conftest import PrepareCity
from tests.sources import (
    CALIFORNIA,
    NEW_YORK,
    TOKYO,
    local_hours_in,
    table,
    table_rows,
    triples_in,
    triples_of,
    visits_in,
)

VISITS = visits_in(CALIFORNIA)
ROWS = table_rows(VISITS)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_name_with_brackets_is_no_pattern_of_other_names(
    prepared: PrepareCity, tmp_path: Path, ending: str
) -> None:
    for name, visits in (("visits[1]", VISITS), ("visits1", VISITS[:-1])):
        text = table(table_rows(visits), by=",").encode()
        if ending == "csv":
            (tmp_path / f"{name}.csv").write_bytes(text)
        else:
            pl.read_csv(text, infer_schema=False).write_parquet(tmp_path / f"{name}.parquet")
    city, _ = prepared(tmp_path / f"visits[1].{ending}")
    assert triples_in(city) == triples_of(VISITS)


@pytest.mark.parametrize("ending", ["csv", "tsv", "txt", "csv.gz", "tsv.gz", "txt.gz"])
def test_a_text_table_gives_its_visits_back(
    prepared: PrepareCity, tmp_path: Path, ending: str
) -> None:
    source = tmp_path / f"visits.{ending}"
    content = table(ROWS, by="," if "csv" in ending else "\t").encode()
    source.write_bytes(gzip.compress(content) if ending.endswith("gz") else content)
    city, ended = prepared(source)
    assert triples_in(city) == triples_of(VISITS)
    assert city.manifest["sources"][0]["layout"] == "table"
    assert {key: ended.json[key] for key in ("checkins", "users", "places")} == {
        "checkins": 15,
        "users": 3,
        "places": 4,
    }
    assert (ended.json["train"], ended.json["validation"], ended.json["test"]) == (9, 3, 3)


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_columns_may_be_named_in_any_language(
    prepared: PrepareCity, tmp_path: Path, encoding: str
) -> None:
    source = tmp_path / "besuche.csv"
    header = ("user", "straße", "lat", "lon", "time")
    source.write_text(table(ROWS, header), encoding=encoding)
    said = [] if encoding == "utf-8" else ["--encoding", encoding]
    city, _ = prepared(source, "--columns", "place=straße", *said)
    assert triples_in(city) == triples_of(VISITS)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("\ufeff" + table(ROWS), id="byte order mark"),
        pytest.param(table(ROWS).replace("\n", "\r\n"), id="windows line ends"),
        pytest.param(table(ROWS).removesuffix("\n"), id="no last line end"),
        pytest.param(table(ROWS) + "\n\n", id="blank lines at the end"),
        pytest.param(table(ROWS).replace("\n", "\n\n"), id="blank lines between"),
        pytest.param(
            table(
                [[f" {cell} " if 2 <= at <= 4 else cell for at, cell in enumerate(r)] for r in ROWS]
            ),
            id="blanks around numbers and times",
        ),
        pytest.param(
            table([["7", *r] for r in ROWS], ("row", "user", "place", "lat", "lon", "time")),
            id="a column named row",
        ),
        pytest.param(
            table([["7", *r] for r in ROWS], ("", "user", "place", "lat", "lon", "time")),
            id="a column without a name",
        ),
        pytest.param(
            table([[*r[:4], f'"{r[4]}"'] for r in ROWS]),
            id="quoted cells",
        ),
    ],
)
def test_a_table_is_read_however_it_was_exported(
    prepared: PrepareCity, tmp_path: Path, text: str
) -> None:
    source = tmp_path / "visits.csv"
    source.write_bytes(text.encode())
    city, _ = prepared(source)
    assert triples_in(city) == triples_of(VISITS)


@pytest.mark.parametrize(
    ("given", "by"), [(";", ";"), ("tab", "\t"), ("\\t", "\t"), ("';'", ";"), ("|", "|")]
)
def test_a_delimiter_can_be_given(
    prepared: PrepareCity, tmp_path: Path, given: str, by: str
) -> None:
    source = tmp_path / "visits.csv"
    source.write_text(table(ROWS, by=by))
    city, _ = prepared(source, "--delimiter", given)
    assert triples_in(city) == triples_of(VISITS)


def test_ids_with_spaces_and_emoji_are_kept(prepared: PrepareCity, tmp_path: Path) -> None:
    source = tmp_path / "visits.csv"
    names = {"12": "Zoë 👩‍🚀", "470": "ann  lee", "979": "名前"}
    source.write_text(table([[names[r[0]], f"☕ {r[1]}", *r[2:]] for r in ROWS]))
    city, _ = prepared(source)
    assert set(city.users[record.USER_ID]) == set(names.values())
    assert set(city.places[record.PLACE_ID]) == {f"☕ {p.id}" for p in CALIFORNIA.places}


@pytest.mark.parametrize("unit", [1, 1000])
def test_epochs_are_read_from_text_in_seconds_and_milliseconds(
    prepared: PrepareCity, tmp_path: Path, unit: int
) -> None:
    source = tmp_path / "visits.csv"
    times = [str(int(v.at.timestamp()) * unit) for v in VISITS]
    source.write_text(table([[*r[:4], at] for r, at in zip(ROWS, times, strict=True)]))
    city, _ = prepared(source)
    assert triples_in(city) == triples_of(VISITS)


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
def test_times_that_say_their_offset_are_read(
    prepared: PrepareCity, tmp_path: Path, pattern: str
) -> None:
    source = tmp_path / "visits.csv"
    rows = zip(ROWS, VISITS, strict=True)
    source.write_text(table([[*r[:4], v.at.strftime(pattern)] for r, v in rows]))
    city, _ = prepared(source)
    assert triples_in(city) == triples_of(VISITS)


@pytest.mark.parametrize("pattern", ["%Y-%m-%d %H:%M+00:00", "%Y-%m-%dT%H:%MZ"])
def test_times_that_say_their_offset_need_no_seconds(
    prepared: PrepareCity, tmp_path: Path, pattern: str
) -> None:
    source = tmp_path / "visits.csv"
    visits = [replace(v, at=v.at.replace(second=0, microsecond=0)) for v in VISITS]
    rows = [[*r[:4], v.at.strftime(pattern)] for r, v in zip(ROWS, visits, strict=True)]
    source.write_text(table(rows))
    city, _ = prepared(source)
    assert triples_in(city) == triples_of(visits)


def test_offsets_in_times_are_honoured(prepared: PrepareCity, tmp_path: Path) -> None:
    source = tmp_path / "visits.csv"
    zones = [timezone(timedelta(minutes=minutes)) for minutes in (-420, 0, 330)]
    rows = [
        [*r[:4], v.at.astimezone(zones[number % 3]).isoformat()]
        for number, (r, v) in enumerate(zip(ROWS, VISITS, strict=True))
    ]
    source.write_text(table(rows))
    city, _ = prepared(source)
    assert triples_in(city) == triples_of(VISITS)


@pytest.mark.parametrize("pattern", ["%Y-%m-%d %H:%M:%S", "%Y/%m/%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S"])
def test_a_column_that_calls_itself_utc_needs_no_zone(
    prepared: PrepareCity, tmp_path: Path, pattern: str
) -> None:
    source = tmp_path / "visits.csv"
    rows = [[*r[:4], v.at.strftime(pattern)] for r, v in zip(ROWS, VISITS, strict=True)]
    source.write_text(table(rows, ("user", "poi", "lat", "lon", "utc_time")))
    city, ended = prepared(source)
    assert triples_in(city) == triples_of(VISITS)
    assert city.manifest["naive_times"] == "utc"
    assert ended.code == 0


def test_a_time_format_that_first_shows_late_in_the_file_is_read_too(
    prepared: PrepareCity, tmp_path: Path
) -> None:
    source = tmp_path / "visits.csv"
    many = [r for r in ROWS for _ in range(80)]  # beyond the sample of 1000 rows
    last = VISITS[0]
    written = last.at.replace(day=28).strftime("%a %b %d %H:%M:%S +0000 %Y")
    source.write_text(table([*many, [*ROWS[0][:4], written]]))
    city, _ = prepared(source)
    assert (last.user, last.place.id, last.at.replace(day=28).isoformat()) in triples_in(city)


@pytest.mark.parametrize("blank", ["", " ", '""', '"  "'])
def test_a_blank_category_name_or_zone_is_none(
    prepared: PrepareCity, tmp_path: Path, blank: str
) -> None:
    source = tmp_path / "visits.csv"
    header = ("user", "place", "lat", "lon", "time", "category", "name", "zone")
    source.write_text(table([[*r, blank, blank, blank] for r in ROWS], header))
    city, _ = prepared(source)
    assert city.places[record.CATEGORY].to_list() == [None] * 4
    assert city.places[record.NAME].to_list() == [None] * 4
    assert set(city.places[record.ZONE]) == {"America/Los_Angeles"}


@pytest.mark.parametrize(("lat", "lon"), [("0", "32.5"), ("51.48", "0.0")])
def test_the_equator_and_the_meridian_of_greenwich_are_no_null_island(
    prepared: PrepareCity, tmp_path: Path, lat: str, lon: str
) -> None:
    source = tmp_path / "visits.csv"
    source.write_text(table([[*r[:2], lat, lon, r[4]] for r in ROWS]))
    city, _ = prepared(source)
    assert city.places.select(record.LAT, record.LON).unique().rows() == [(float(lat), float(lon))]


# Local time


def test_local_wall_clocks_become_instants_by_the_zone_of_their_place(
    prepared: PrepareCity, tmp_path: Path
) -> None:
    source = tmp_path / "visits.csv"
    visits = visits_in(TOKYO)
    rows = [
        [*r[:4], (v.at.replace(hour=10)).strftime("%Y-%m-%d %H:%M:%S")]
        for r, v in zip(table_rows(visits), visits, strict=True)
    ]
    source.write_text(table(rows, ("user", "place", "lat", "lon", "local_time")))
    city, _ = prepared(source)
    assert set(local_hours_in(city)) == {10}
    assert {at[11:13] for _, _, at in triples_in(city)} == {"01"}


def test_local_wall_clocks_can_follow_an_offset_column(
    prepared: PrepareCity, tmp_path: Path
) -> None:
    source = tmp_path / "visits.csv"
    rows = [[*r[:4], r[4][:10] + " 10:00:00", "120"] for r in ROWS]
    source.write_text(table(rows, ("user", "place", "lat", "lon", "local_time", "offset")))
    city, _ = prepared(source, "--local-time", "offset")
    assert {at[11:13] for _, _, at in triples_in(city)} == {"08"}
    assert set(local_hours_in(city)) == {10}


def test_a_zone_column_goes_before_coordinates_and_one_given_zone_before_all(
    prepared: PrepareCity, tmp_path: Path
) -> None:
    source = tmp_path / "visits.csv"
    zones = ["Asia/Tokyo" if r[1] == CALIFORNIA.places[0].id else "" for r in ROWS]
    rows = [[*r, zone] for r, zone in zip(ROWS, zones, strict=True)]
    source.write_text(table(rows, ("user", "place", "lat", "lon", "time", "zone")))
    city, ended = prepared(source)
    by_place = dict(city.places.select(record.PLACE_ID, record.ZONE).iter_rows())
    assert by_place.pop(CALIFORNIA.places[0].id) == "Asia/Tokyo"
    assert set(by_place.values()) == {"America/Los_Angeles"}
    assert ended.json["zone_rule"] == "zone column, else coordinates"
    city, ended = prepared(source, "--zone", "Europe/Paris", "--overwrite")
    assert set(city.places[record.ZONE]) == {"Europe/Paris"}
    assert ended.json["zone_rule"] == "one zone for all: Europe/Paris"


def test_a_clock_shift_moves_every_instant(prepared: PrepareCity, tmp_path: Path) -> None:
    source = tmp_path / "visits.csv"
    source.write_text(table(ROWS))
    city, _ = prepared(source, "--clock-shift", "-5.5h")
    assert {at[11:16] for _, _, at in triples_in(city)} == {"12:30", "12:31", "12:32"}


def test_several_tables_make_one_city(prepared: PrepareCity, tmp_path: Path) -> None:
    first, second = tmp_path / "a.csv", tmp_path / "b.parquet"
    first.write_text(table(ROWS[:7]))
    pl.read_csv(table(ROWS[7:]).encode()).write_parquet(second)
    city, _ = prepared(first, second)
    assert triples_in(city) == triples_of(VISITS)
    assert [source["file"] for source in city.manifest["sources"]] == ["a.csv", "b.parquet"]


def test_a_split_and_trajectories_of_a_table_serve_the_recipe_of_the_paper(
    prepared: PrepareCity, tmp_path: Path
) -> None:
    source = tmp_path / "nyc.csv"
    rows = [
        [*r, {"06": "VAL", "07": "Test"}.get(r[4][8:10], "Train"), f"{r[0]}_t1"]
        for r in table_rows(visits_in(NEW_YORK))
    ]
    source.write_text(
        table(rows, ("user", "poi", "lat", "lon", "utc_time", "split", "trajectory_id"))
    )
    city, ended = prepared(source, "--recipe", "nyc")
    assert triples_in(city) == triples_of(visits_in(NEW_YORK))
    assert ended.json["steps"][-1]["step"] == "unseen in the published train"


def test_the_manifest_tells_how_the_city_came_to_be(prepared: PrepareCity, tmp_path: Path) -> None:
    source = tmp_path / "visits.csv"
    source.write_text(table([*ROWS, ROWS[0]]))
    city, _ = prepared(source)
    content = source.read_bytes()
    assert city.manifest["sources"] == [
        {
            "file": "visits.csv",
            "layout": "table",
            "bytes": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
        }
    ]
    counts = [
        (s["step"], s["checkins_before"], s["checkins_after"]) for s in city.manifest["steps"]
    ]
    assert counts == [("rows that are no check-ins", 16, 16), ("exact duplicates", 16, 15)]
    assert city.manifest["zone_rule"] == "coordinates of the place"
    assert city.manifest["split"] == "leave-one-out"
    assert set(city.manifest["versions"]) == {"castpoi", "polars", "zone_boundaries"}
    assert City.load(tmp_path / "city").checkins[record.AT_UTC].dtype == pl.Datetime("us", "UTC")
