"""Every published layout, on a hand-made sample, through `castpoi data prepare --format auto`."""

import gzip
from dataclasses import replace
from pathlib import Path

import pytest

from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.checkins.reading.layouts import (
    GETNEXT,
    MASSIVE_STEPS,
    SNAP,
    STHGCN,
    TABLE,
    TSMC2014,
    Layout,
    files_of_folder,
    part_by_name,
    recognise_layout,
)
from tests import sources
from tests.checkins.reading.conftest import PrepareCity
from tests.conftest import CommandLine
from tests.sources import (
    BRIGHTKITE_BLANKS,
    CALIFORNIA,
    NEW_YORK,
    TOKYO,
    Place,
    Town,
    Visit,
    local_hours_in,
    parts_in,
    triples_in,
    triples_of,
    visits_in,
)


def layouts_of(city: City) -> set[str]:
    return {source["layout"] for source in city.manifest["sources"]}


# Foursquare TSMC2014


@pytest.mark.parametrize("town", [NEW_YORK, TOKYO])
def test_a_tsmc2014_file_gives_its_visits_back(
    prepared: PrepareCity, tmp_path: Path, town: Town
) -> None:
    source = tmp_path / "dataset_TSMC2014_NYC.txt"
    source.write_bytes(sources.tsmc2014(visits_in(town), offset_minutes=-240))
    city, _ = prepared(source)
    assert layouts_of(city) == {"tsmc2014"}
    assert triples_in(city) == triples_of(visits_in(town))
    assert parts_in(city) == {"train": 9, "validation": 3, "test": 3}


def test_tsmc2014_is_latin_1_and_keeps_its_accents(prepared: PrepareCity, tmp_path: Path) -> None:
    source = tmp_path / "dataset_TSMC2014_NYC.txt"
    content = sources.tsmc2014(visits_in(NEW_YORK), offset_minutes=-240)
    assert b"Caf\xe9" in content
    source.write_bytes(content)
    city, _ = prepared(source)
    assert set(city.places[record.CATEGORY]) == {place.category for place in NEW_YORK.places}


def test_tsmc2014_local_time_follows_the_place_unless_told_otherwise(
    prepared: PrepareCity, tmp_path: Path
) -> None:
    source = tmp_path / "dataset_TSMC2014_NYC.txt"
    # the offset column is wrong on purpose: New York stood at -240 in April 2012
    source.write_bytes(sources.tsmc2014(visits_in(NEW_YORK), offset_minutes=60))
    city, _ = prepared(source)
    assert set(local_hours_in(city)) == {14}
    by_offset, ended = prepared(source, "--local-time", "offset", "--overwrite")
    assert set(local_hours_in(by_offset)) == {19}
    assert ended.json["zone_rule"] == "offset column of the source"
    assert triples_in(by_offset) == triples_in(city)


def test_tsmc2014_can_be_gzipped(prepared: PrepareCity, tmp_path: Path) -> None:
    source = tmp_path / "nyc.txt.gz"
    content = sources.tsmc2014(visits_in(NEW_YORK), offset_minutes=-240)
    source.write_bytes(gzip.compress(content))
    city, _ = prepared(source)
    assert triples_in(city) == triples_of(visits_in(NEW_YORK))
    assert "Café" in city.places[record.CATEGORY]


# SNAP Gowalla and Brightkite


@pytest.mark.parametrize("name", ["loc-gowalla_totalCheckins.txt", "checkins.txt.gz"])
def test_a_gowalla_file_gives_its_visits_back(
    prepared: PrepareCity, tmp_path: Path, name: str
) -> None:
    content = sources.snap(visits_in(CALIFORNIA)).encode()
    source = tmp_path / name
    source.write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    city, _ = prepared(source)
    assert layouts_of(city) == {"snap"}
    assert triples_in(city) == triples_of(visits_in(CALIFORNIA))
    assert city.places[record.CATEGORY].to_list() == [None] * 4
    assert set(local_hours_in(city)) == {11}


def test_a_brightkite_file_with_blanks_is_refused_with_all_counts(
    castpoi: CommandLine, tmp_path: Path
) -> None:
    source = tmp_path / "loc-brightkite_totalCheckins.txt"
    source.write_text(sources.snap(visits_in(NEW_YORK)) + BRIGHTKITE_BLANKS)
    ended = castpoi("data", "prepare", source, "--out", tmp_path / "city")
    assert ended.code == 1
    assert f"{source}, row 16 (line 16): the place is missing; fill it in" in ended.err
    assert "--on-bad-rows drop (of 17 rows: 1 no place, 1 null island)" in ended.err


def test_a_brightkite_file_without_its_blanks_is_a_city(
    prepared: PrepareCity, tmp_path: Path
) -> None:
    source = tmp_path / "loc-brightkite_totalCheckins.txt"
    source.write_text(BRIGHTKITE_BLANKS + sources.snap(visits_in(NEW_YORK)))
    city, ended = prepared(source, "--on-bad-rows", "drop")
    assert triples_in(city) == triples_of(visits_in(NEW_YORK))
    assert ended.json["dropped_rows"] == {"no place": 1, "null island": 1}
    dropped = (tmp_path / "city.dropped.csv").read_text().splitlines()
    assert dropped[1].startswith("loc-brightkite_totalCheckins.txt,1,no place,12,")
    assert dropped[2].startswith("loc-brightkite_totalCheckins.txt,2,null island,470,2008-04-14T")


# GETNext


def getnext_triple() -> tuple[dict[str, list[tuple[Visit, str]]], list[Visit]]:
    """Rows of the three files, and the visits that the recipe of the paper keeps.

    Beyond the week of three people: a trajectory of one check-in, a test row at a place that
    train lacks, and a validation row of a user whom train lacks.
    """
    week = visits_in(NEW_YORK)
    nowhere = Place("4unseen", 40.72, -74.0, "Park", "")
    late = week[-1].at.replace(day=20)
    single = replace(week[0], at=week[0].at.replace(day=28))
    rows = {
        "NYC_train": [(v, f"{v.user}_1") for v in week if v.at.day <= 5] + [(single, "12_9")],
        "NYC_val": [(v, f"{v.user}_2") for v in week if v.at.day == 6],
        "NYC_test": [(v, f"{v.user}_2") for v in week if v.at.day == 7],
    }
    rows["NYC_test"] += [(replace(week[0], place=nowhere, at=late), "12_2")]
    rows["NYC_val"] += [(replace(week[0], user="7", at=late.replace(day=d)), "7_1") for d in (8, 9)]
    return rows, week


def write_getnext(folder: Path) -> list[Visit]:
    rows, kept = getnext_triple()
    folder.mkdir()
    for stem, part in rows.items():
        (folder / f"{stem}.csv").write_text(sources.getnext(part, NEW_YORK.zone))
    return kept


@pytest.mark.parametrize("as_folder", [False, True])
def test_a_getnext_triple_goes_through_the_recipe_of_the_paper(
    prepared: PrepareCity, tmp_path: Path, as_folder: bool
) -> None:
    folder = tmp_path / "NYC"
    kept = write_getnext(folder)
    given = [folder] if as_folder else sorted(folder.iterdir())
    city, ended = prepared(*given, "--recipe", "nyc")
    assert layouts_of(city) == {"getnext"}
    assert triples_in(city) == triples_of(kept)
    left = [(step["checkins_before"], step["checkins_after"]) for step in ended.json["steps"]]
    assert left == [(19, 19), (19, 18), (18, 15)]
    assert set(local_hours_in(city)) == {14}


def test_a_getnext_triple_is_a_city_without_a_recipe_too(
    prepared: PrepareCity, tmp_path: Path
) -> None:
    write_getnext(tmp_path / "NYC")
    city, _ = prepared(tmp_path / "NYC")
    assert city.checkins.height == 19
    assert city.manifest["recipe"]["name"] == "custom"


@pytest.mark.parametrize("time", ["2012-04-03 18:00:09", "Tue Apr 03 18:00:09 +0000 2012"])
def test_getnext_times_are_utc_however_they_are_written(
    prepared: PrepareCity, tmp_path: Path, time: str
) -> None:
    source = tmp_path / "NYC_train.csv"
    text = sources.getnext([(v, "1") for v in visits_in(NEW_YORK)], NEW_YORK.zone)
    source.write_text(text.replace("2012-04-03 18:00:09+00:00", time))
    city, _ = prepared(source)
    assert triples_in(city) == triples_of(visits_in(NEW_YORK))


# STHGCN / LLM4POI

PAPER_CITIES = [
    pytest.param(NEW_YORK, False, 0, id="NYC"),
    pytest.param(TOKYO, False, 1, id="TKY"),
    pytest.param(CALIFORNIA, True, 1, id="CA"),
]


@pytest.mark.parametrize(("town", "is_utc", "first_id"), PAPER_CITIES)
def test_a_sthgcn_triple_gives_its_visits_back_without_a_look_at_its_epochs(
    prepared: PrepareCity, tmp_path: Path, town: Town, is_utc: bool, first_id: int
) -> None:
    folder = tmp_path / "preprocessed"
    visits = sources.write_sthgcn(folder, town, is_utc=is_utc, first_id=first_id)
    city, _ = prepared(folder)
    assert layouts_of(city) == {"sthgcn"}
    assert triples_in(city) == triples_of(visits)
    assert parts_in(city) == {"train": 9, "validation": 3, "test": 3}
    assert city.manifest["naive_times"] == ("utc" if is_utc else "local")


def test_place_0_of_the_sthgcn_files_is_a_place_in_new_york(
    prepared: PrepareCity, tmp_path: Path
) -> None:
    sources.write_sthgcn(tmp_path / "nyc", NEW_YORK, is_utc=False, first_id=0)
    city, _ = prepared(tmp_path / "nyc")
    assert city.places[record.PLACE_ID].to_list() == ["0", "1", "2", "3"]


@pytest.mark.parametrize(("town", "is_utc"), [(TOKYO, False), (CALIFORNIA, True)])
def test_place_0_of_the_sthgcn_files_is_padding_elsewhere(
    prepared: PrepareCity, tmp_path: Path, town: Town, is_utc: bool
) -> None:
    folder = tmp_path / "elsewhere"
    sources.write_sthgcn(folder, town, is_utc=is_utc, first_id=0)
    city, ended = prepared(folder)
    padded = [place.place == town.places[0] for place in visits_in(town)].count(True)
    assert city.places[record.PLACE_ID].to_list() == ["1", "2", "3"]
    assert ended.json["steps"][0] == {
        "step": "padding rows",
        "checkins_before": 15,
        "checkins_after": 15 - padded,
        "users_after": 3,
        "places_after": 3,
    }


def test_whole_trajectories_stand_for_the_last_visits_beside_them(
    prepared: PrepareCity, tmp_path: Path
) -> None:
    folder = tmp_path / "nyc"
    visits = sources.write_sthgcn(folder, NEW_YORK, is_utc=False, first_id=0)
    (folder / "validate_sample.csv").rename(folder / "validate_sample_with_traj.csv")
    # the short file lacks what the whole one has, and would add a visit if it were read too
    stray = replace(visits_in(NEW_YORK)[3], at=visits[3].at.replace(hour=23))
    short = sources.sthgcn([stray], NEW_YORK, is_utc=False, first_id=0)
    (folder / "validate_sample.csv").write_text(short)
    (folder / "sample.csv").write_text(short)
    city, _ = prepared(folder)
    assert triples_in(city) == triples_of(visits)
    assert sorted(source["file"] for source in city.manifest["sources"]) == [
        "test_sample.csv",
        "train_sample.csv",
        "validate_sample_with_traj.csv",
    ]


def test_the_manifest_names_the_recipe_that_the_sthgcn_files_have_been_through(
    prepared: PrepareCity, tmp_path: Path
) -> None:
    sources.write_sthgcn(tmp_path / "nyc", NEW_YORK, is_utc=False, first_id=0)
    city, _ = prepared(tmp_path / "nyc", "--recipe", "nyc")
    assert city.manifest["recipe"]["name"] == "published"
    city, ended = prepared(tmp_path / "nyc", "--repeat-minutes", "30", "--overwrite")
    assert city.manifest["recipe"]["name"] == "custom"
    assert "repeats within 30 min" in [step["step"] for step in ended.json["steps"]]


def test_sthgcn_files_of_another_city_are_refused_with_a_way_to_read_them(
    castpoi: CommandLine, tmp_path: Path
) -> None:
    paris = Town("Europe/Paris", tuple(replace(p, lat=48.8, lon=2.3) for p in NEW_YORK.places))
    folder = tmp_path / "paris"
    sources.write_sthgcn(folder, paris, is_utc=False, first_id=0)
    ended = castpoi("data", "prepare", folder, "--out", tmp_path / "city")
    assert ended.code == 1
    assert "is not in New York, Tokyo or California" in ended.err
    way_out = (
        "--format table --columns user=UserId,place=PoiId,lat=Latitude,lon=Longitude,"
        "time=UTCTimeOffset --naive-times local"
    )
    assert way_out in ended.err
    ended = castpoi("data", "prepare", folder, "--out", tmp_path / "city", *way_out.split())
    assert ended.code == 0, ended.err


# Massive-STEPS


def test_a_massive_steps_file_gives_its_visits_back_from_their_wall_clocks(
    prepared: PrepareCity, tmp_path: Path
) -> None:
    source = tmp_path / "tokyo_checkins.csv"
    source.write_text(sources.massive_steps(visits_in(TOKYO), TOKYO))
    city, _ = prepared(source)
    assert layouts_of(city) == {"massive-steps"}
    assert triples_in(city) == triples_of(visits_in(TOKYO))
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
def test_the_name_of_a_file_tells_its_part_of_the_published_split(
    name: str, part: str | None
) -> None:
    assert part_by_name(Path(name)) == part


def test_a_folder_without_a_whole_triple_stands_for_all_its_tables(tmp_path: Path) -> None:
    for name in ("a.csv", "b_train.csv", "c.parquet", "notes.md"):
        (tmp_path / name).touch()
    names = [path.name for path in files_of_folder(tmp_path)]
    assert names == ["a.csv", "b_train.csv", "c.parquet"]
