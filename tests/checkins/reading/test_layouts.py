"""Every published layout on a sample by hand, and which column means what."""

import gzip
from dataclasses import replace
from pathlib import Path

import pytest

from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.checkins.cleaning import NYC
from castpoi.checkins.prepare import Preparation, make_city
from castpoi.checkins.reading.layouts import (
    GETNEXT,
    MASSIVE_STEPS,
    SNAP,
    STHGCN,
    TABLE,
    TSMC2014,
    Layout,
    parse_columns,
    part_by_name,
    recognise_layout,
)
from castpoi.core.errors import BadInput, BadRows, UnknownLayout
from tests import sources
from tests.checkins.reading.conftest import CityOf
from tests.messages import refused
from tests.sources import (
    BRIGHTKITE_BLANKS,
    CALIFORNIA,
    NEW_YORK,
    TOKYO,
    Place,
    Town,
    Visit,
    checkins_in,
    checkins_of,
    local_hours_in,
    parts_in,
    table,
    table_rows,
    visits_in,
)

WEEK = visits_in(NEW_YORK)
ROWS = table_rows(WEEK)


def layouts_of(city: City) -> set[str]:
    return {source["layout"] for source in city.manifest["sources"]}


# Foursquare TSMC2014


@pytest.mark.parametrize("town", [NEW_YORK, TOKYO])
@pytest.mark.parametrize("name", ["dataset_TSMC2014_NYC.txt", "nyc.txt.gz"])
def test_a_tsmc2014_file_is_read_in_latin_1(city_of: CityOf, town: Town, name: str) -> None:
    content = sources.tsmc2014(visits_in(town), offset_minutes=-240)
    city = city_of(gzip.compress(content) if name.endswith("gz") else content, name)
    assert layouts_of(city) == {"tsmc2014"}
    assert checkins_in(city) == checkins_of(visits_in(town))
    assert parts_in(city) == {"train": 9, "validation": 3, "test": 3}
    assert set(city.places[record.CATEGORY]) == {place.category for place in town.places}


def test_tsmc2014_local_time_follows_the_place_not_the_offset_of_the_file(city_of: CityOf) -> None:
    # the offset column is wrong on purpose: New York had -240 in April 2012
    city = city_of(sources.tsmc2014(WEEK, offset_minutes=60), "nyc.txt")
    assert set(local_hours_in(city)) == {14}


# SNAP Gowalla and Brightkite


@pytest.mark.parametrize("name", ["loc-gowalla_totalCheckins.txt", "checkins.txt.gz"])
def test_a_gowalla_file_is_read(city_of: CityOf, name: str) -> None:
    content = sources.snap(visits_in(CALIFORNIA)).encode()
    city = city_of(gzip.compress(content) if name.endswith("gz") else content, name)
    assert layouts_of(city) == {"snap"}
    assert checkins_in(city) == checkins_of(visits_in(CALIFORNIA))
    assert city.places[record.CATEGORY].to_list() == [None] * 4
    assert set(local_hours_in(city)) == {11}


def test_rows_of_brightkite_without_a_place_are_refused_or_dropped(city_of: CityOf) -> None:
    content, name = BRIGHTKITE_BLANKS + sources.snap(WEEK), "loc-brightkite_totalCheckins.txt"
    with refused(BadRows):
        city_of(content, name)
    city = city_of(content, name, on_bad_rows="drop")
    assert checkins_in(city) == checkins_of(WEEK)
    assert city.manifest["dropped_rows"] == {"no place": 1, "null island": 1}
    assert city.dropped is not None
    assert city.dropped.row(0)[:4] == (name, 1, "no place", "12")
    assert city.dropped.row(1)[:4] == (name, 2, "null island", "470")


# GETNext


def write_getnext(folder: Path) -> list[Visit]:
    """Write the three files; the visits that the recipe of the paper keeps.

    Beyond the week of three people: a trajectory of one check-in, a test row at a place that
    train lacks, and a validation row of a user whom train lacks.
    """
    nowhere = Place("4unseen", 40.72, -74.0, "Park", "")
    late = WEEK[-1].at.replace(day=20)
    single = replace(WEEK[0], at=WEEK[0].at.replace(day=28))
    rows = {
        "NYC_train": [(v, f"{v.user}_1") for v in WEEK if v.at.day <= 5] + [(single, "12_9")],
        "NYC_val": [(v, f"{v.user}_2") for v in WEEK if v.at.day == 6],
        "NYC_test": [(v, f"{v.user}_2") for v in WEEK if v.at.day == 7],
    }
    rows["NYC_test"] += [(replace(WEEK[0], place=nowhere, at=late), "12_2")]
    rows["NYC_val"] += [(replace(WEEK[0], user="7", at=late.replace(day=d)), "7_1") for d in (8, 9)]
    folder.mkdir()
    for stem, part in rows.items():
        (folder / f"{stem}.csv").write_text(sources.getnext(part, NEW_YORK.zone))
    return WEEK


@pytest.mark.parametrize("as_folder", [False, True])
def test_the_three_files_of_getnext_go_through_the_recipe_of_the_paper(
    tmp_path: Path, as_folder: bool
) -> None:
    folder = tmp_path / "NYC"
    kept = write_getnext(folder)
    given = [folder] if as_folder else sorted(folder.iterdir())
    city = make_city(given, Preparation(recipe=NYC))
    assert layouts_of(city) == {"getnext"}
    assert checkins_in(city) == checkins_of(kept)
    left = [(step["checkins_before"], step["checkins_after"]) for step in city.manifest["steps"]]
    assert left == [(19, 19), (19, 18), (18, 15)]
    assert set(local_hours_in(city)) == {14}


# STHGCN / LLM4POI


@pytest.mark.parametrize(
    ("town", "is_utc", "first_id"),
    [
        pytest.param(NEW_YORK, False, 0, id="NYC"),
        pytest.param(TOKYO, False, 1, id="TKY"),
        pytest.param(CALIFORNIA, True, 1, id="CA"),
    ],
)
def test_the_three_files_of_sthgcn_are_read_without_their_wrong_epochs(
    tmp_path: Path, town: Town, is_utc: bool, first_id: int
) -> None:
    visits = sources.write_sthgcn(tmp_path / "in", town, is_utc=is_utc, first_id=first_id)
    city = make_city([tmp_path / "in"], Preparation())
    assert layouts_of(city) == {"sthgcn"}
    assert checkins_in(city) == checkins_of(visits)
    assert parts_in(city) == {"train": 9, "validation": 3, "test": 3}
    assert city.manifest["naive_times"] == ("utc" if is_utc else "local")


def test_place_0_of_the_sthgcn_files_is_a_place_in_new_york(tmp_path: Path) -> None:
    sources.write_sthgcn(tmp_path / "nyc", NEW_YORK, is_utc=False, first_id=0)
    city = make_city([tmp_path / "nyc"], Preparation())
    assert city.places[record.PLACE_ID].to_list() == ["0", "1", "2", "3"]


@pytest.mark.parametrize(("town", "is_utc"), [(TOKYO, False), (CALIFORNIA, True)])
def test_place_0_of_the_sthgcn_files_is_padding_elsewhere(
    tmp_path: Path, town: Town, is_utc: bool
) -> None:
    sources.write_sthgcn(tmp_path / "in", town, is_utc=is_utc, first_id=0)
    city = make_city([tmp_path / "in"], Preparation())
    padded = [visit.place == town.places[0] for visit in visits_in(town)].count(True)
    assert city.places[record.PLACE_ID].to_list() == ["1", "2", "3"]
    assert city.manifest["steps"][0] == {
        "step": "padding rows",
        "checkins_before": 15,
        "checkins_after": 15 - padded,
        "users_after": 3,
        "places_after": 3,
    }


def test_files_of_whole_trajectories_replace_those_of_last_visits(tmp_path: Path) -> None:
    folder = tmp_path / "nyc"
    visits = sources.write_sthgcn(folder, NEW_YORK, is_utc=False, first_id=0)
    (folder / "validate_sample.csv").rename(folder / "validate_sample_with_traj.csv")
    # the short file lacks what the whole one has, and would add a visit if it were read too
    stray = replace(WEEK[3], at=visits[3].at.replace(hour=23))
    short = sources.sthgcn([stray], NEW_YORK, is_utc=False, first_id=0)
    (folder / "validate_sample.csv").write_text(short)
    (folder / "sample.csv").write_text(short)
    city = make_city([folder], Preparation())
    assert checkins_in(city) == checkins_of(visits)
    assert sorted(source["file"] for source in city.manifest["sources"]) == [
        "test_sample.csv",
        "train_sample.csv",
        "validate_sample_with_traj.csv",
    ]


def test_sthgcn_files_of_another_city_are_refused_with_a_way_to_read_them(tmp_path: Path) -> None:
    paris = Town("Europe/Paris", tuple(replace(p, lat=48.8, lon=2.3) for p in NEW_YORK.places))
    sources.write_sthgcn(tmp_path / "paris", paris, is_utc=False, first_id=0)
    with refused(UnknownLayout) as caught:
        make_city([tmp_path / "paris"], Preparation())
    columns = parse_columns(str(caught.value).split("--columns ")[1].split()[0])
    table = Preparation(format="table", columns=columns, naive_times="local")
    assert make_city([tmp_path / "paris"], table).checkins.height == 15


# Massive-STEPS


def test_a_massive_steps_file_is_read_by_its_local_times(city_of: CityOf) -> None:
    city = city_of(sources.massive_steps(visits_in(TOKYO), TOKYO), "tokyo_checkins.csv")
    assert layouts_of(city) == {"massive-steps"}
    assert checkins_in(city) == checkins_of(visits_in(TOKYO))
    assert set(city.places[record.NAME]) == {place.name for place in TOKYO.places}
    assert set(local_hours_in(city)) == {3}


# Recognising


@pytest.mark.parametrize(
    ("first_line", "layout"),
    [
        ("1\ta\tb\tBar\t40\t-74\t-240\tTue Apr 03 18:00:09 +0000 2012\n", TSMC2014),
        ("1\ta\tb\tBar\t40\t-74\t-240\t2012-04-03 18:00:09\n", TABLE),
        ("0\t2010-10-19T23:55:27Z\t30.23\t-97.79\t22847\r\n", SNAP),
        ("12\t\t\t\t\n", SNAP),
        ("user\ttime\tlat\tlon\tplace\n", TABLE),
        (sources.GETNEXT_HEADER, GETNEXT),
        (sources.STHGCN_HEADER, STHGCN),
        (sources.MASSIVE_STEPS_HEADER, MASSIVE_STEPS),
        ("user,place,lat,lon,time\n", TABLE),
    ],
)
def test_a_layout_is_recognised_by_its_first_line(first_line: str, layout: Layout) -> None:
    assert recognise_layout(first_line) is layout


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("NYC_train.csv", "train"),
        ("NYC_val.csv", "validation"),
        ("TKY_test.csv", "test"),
        ("train_sample.csv", "train"),
        ("validate_sample_with_traj.csv", "validation"),
        ("test_sample_with_traj.csv", "test"),
        ("checkins.csv", None),
    ],
)
def test_a_file_is_the_part_of_the_published_split_that_its_name_says(
    name: str, part: str | None
) -> None:
    assert part_by_name(Path(name)) == part


# Columns


@pytest.mark.parametrize(
    "header",
    [
        ("User ID", "Venue_ID", "Latitude", "Longitude", "Timestamp"),
        ("uid", "poi", "y", "x", "created_at"),
        ("USERID", "location id", "LAT", "LNG", "utc_time"),
        ("person", "business_id", "lat", "long", "date"),
    ],
)
def test_usual_names_of_columns_are_recognised(city_of: CityOf, header: tuple[str, ...]) -> None:
    assert checkins_in(city_of(table(ROWS, header))) == checkins_of(WEEK)


@pytest.mark.parametrize("text", ["who=user", "user", "user="])
def test_given_columns_that_are_not_pairs_are_refused(text: str) -> None:
    with refused(BadInput):
        parse_columns(text)
