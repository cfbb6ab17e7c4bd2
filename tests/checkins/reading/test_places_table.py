"""Two tables, places apart from check-ins; tables without a header; a delimiter found by itself."""

from pathlib import Path
from typing import Any, Final

import polars as pl
import pytest

import castpoi
from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.checkins.prepare import Preparation, make_city
from castpoi.core.errors import BadInput, BadRows
from tests.conftest import CommandLine
from tests.messages import refused
from tests.sources import (
    NEW_YORK,
    checkins_in,
    checkins_of,
    table,
    table_rows,
    visits_in,
)

VISITS: Final = visits_in(NEW_YORK)
ROWS: Final = table_rows(VISITS)
CHECKINS: Final = [[row[0], row[1], row[4]] for row in ROWS]
PLACES: Final = [
    [p.id, str(p.lat), str(p.lon), p.category, f'"{p.name}"', "America/New_York"]
    for p in NEW_YORK.places
]
HEADER: Final = ("venue_id", "Latitude", "Longitude", "category", "name", "tz")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """visits.csv and places.csv."""
    (tmp_path / "visits.csv").write_text(table(CHECKINS, ("user", "place", "time")))
    (tmp_path / "places.csv").write_text(table(PLACES, HEADER))
    return tmp_path


def city_of(folder: Path, visits: str = "visits.csv", **options: Any) -> City:
    preparation = Preparation(**options)
    return make_city([folder / visits], preparation, places_table=folder / "places.csv")


def one_table() -> City:
    frame = pl.read_csv(table(ROWS).encode(), schema_overrides={"user": pl.String})
    return make_city([frame], Preparation())


def test_places_give_check_ins_their_coordinates_names_and_categories(folder: Path) -> None:
    city = city_of(folder)
    assert checkins_in(city) == checkins_of(VISITS)
    by_id = {p.id: (p.lat, p.lon, p.category, p.name) for p in NEW_YORK.places}
    columns = (record.PLACE_ID, record.LAT, record.LON, record.CATEGORY, record.NAME)
    rows = city.places.select(columns).iter_rows()
    assert {place: tuple(more) for place, *more in rows} == by_id
    assert [each["file"] for each in city.manifest["sources"]] == ["visits.csv", "places.csv"]
    assert city.manifest["zone_rule"] == "zone column, else coordinates"


def test_the_places_table_wins_over_columns_of_the_check_ins(folder: Path) -> None:
    moved = [[*row[:2], "1.0", "2.0", row[4]] for row in ROWS]
    (folder / "visits.csv").write_text(table(moved))
    city = city_of(folder)
    assert city.fingerprint == city_of_places_only(folder).fingerprint
    assert city.manifest["remarks"] == []


def city_of_places_only(folder: Path) -> City:
    (folder / "apart.csv").write_text(table(CHECKINS, ("user", "place", "time")))
    return city_of(folder, "apart.csv")


def test_whole_numbers_are_one_id_in_any_type(tmp_path: Path) -> None:
    number = {p.id: at for at, p in enumerate(NEW_YORK.places)}
    visits = pl.DataFrame(
        {
            "user": [row[0] for row in ROWS],
            "place": [f" {number[row[1]]}" for row in ROWS],
            "time": [row[4] for row in ROWS],
        }
    )
    places = pl.DataFrame(
        {
            "id": [float(at) for at in number.values()],
            "lat": [p.lat for p in NEW_YORK.places],
            "lon": [p.lon for p in NEW_YORK.places],
        }
    )
    city = castpoi.prepare(visits, places_table=places)
    assert city.places[record.PLACE_ID].to_list() == ["0", "1", "2", "3"]
    assert len(checkins_in(city)) == len(VISITS)


def test_missing_places_are_named_with_their_count(folder: Path) -> None:
    (folder / "places.csv").write_text(table(PLACES[1:], HEADER))
    with refused(BadRows):
        city_of(folder)
    city = city_of(folder, on_bad_rows="drop")
    (remark,) = city.manifest["remarks"]
    assert remark.startswith("1 of 4 places are not in places.csv (")
    assert remark.endswith("with 5 of 15 check-ins")
    assert city.manifest["dropped_rows"] == {"no coordinates": 5}


@pytest.mark.parametrize(
    ("places", "options"),
    [
        (table([["x", *PLACES[0][1:]]], HEADER), {"on_bad_rows": "drop"}),
        (table([*PLACES, [PLACES[0][0], "1", *PLACES[0][2:]]], HEADER), {}),
        (table([row[:2] for row in PLACES], HEADER[:2]), {}),
        (table(PLACES, HEADER), {"places_columns": {"lat": "north"}}),
        (table(PLACES, HEADER), {"places_columns": {"user": "name"}}),
        (table(PLACES, HEADER), {"columns": {"lat": "user"}}),
    ],
    ids=["no place in common", "a place twice", "no longitude", "no column", "a user", "both"],
)
def test_a_bad_places_table_is_refused(folder: Path, places: str, options: dict[str, Any]) -> None:
    (folder / "places.csv").write_text(places)
    with refused(BadInput):
        city_of(folder, **options)


def test_check_ins_without_coordinates_are_offered_a_places_table(folder: Path) -> None:
    with refused(BadInput):
        make_city([folder / "visits.csv"], Preparation())


@pytest.mark.parametrize("by", ["\t", ",", " "])
def test_two_tables_without_a_header_are_read_by_position(
    castpoi: CommandLine, tmp_path: Path, by: str
) -> None:
    seconds = [[v.user, v.place.id, str(int(v.at.timestamp()))] for v in VISITS]
    places = [row[:3] for row in PLACES]
    (tmp_path / "visits.txt").write_text(table(seconds[1:], seconds[0], by=by))
    (tmp_path / "places.txt").write_text(table(places[1:], places[0], by=by))
    ended = castpoi(
        *("data", "prepare", tmp_path / "visits.txt", "--out", tmp_path / "city", "--no-header"),
        *("--columns", "user=1,place=2,time=3", "--places-table", tmp_path / "places.txt"),
        *("--places-columns", "place=1,lat=2,lon=3", "--json"),
    )
    assert ended.code == 0, ended.err
    city = City.load(tmp_path / "city")
    assert checkins_in(city) == checkins_of(VISITS)
    assert city.fingerprint == one_table().fingerprint


def test_a_first_row_in_place_of_a_header_is_recognised(tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text(table(ROWS[1:], ROWS[0]))
    with refused(BadInput):
        make_city([tmp_path / "v.csv"], Preparation())
    with refused(BadInput):
        make_city([tmp_path / "v.csv"], Preparation(no_header=True))
    with refused(BadInput):
        make_city([tmp_path / "v.csv"], Preparation(no_header=True, columns={"user": "6"}))


@pytest.mark.parametrize(
    ("name", "by", "word"), [("v.csv", ";", "semicolon"), ("v.tsv", ",", "comma")]
)
def test_a_delimiter_that_is_certain_is_used_and_reported(
    tmp_path: Path, name: str, by: str, word: str
) -> None:
    (tmp_path / name).write_text(table(ROWS, by=by))
    city = make_city([tmp_path / name], Preparation())
    assert checkins_in(city) == checkins_of(VISITS)
    assert city.manifest["remarks"] == [f"{name}: the columns are separated by a {word}"]


def test_a_delimiter_that_the_header_does_not_have_is_refused(tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text(table(ROWS, by=";"))
    with refused(BadInput):
        make_city([tmp_path / "v.csv"], Preparation(delimiter=","))
