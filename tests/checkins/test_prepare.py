"""Preparing a city from a table: order, ids, split and local time, without the command line."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.checkins.cleaning import Recipe
from castpoi.checkins.prepare import Preparation, make_city, prepare
from castpoi.core.errors import BadInput
from tests.messages import refused
from tests.sources import NEW_YORK, checkins_in, table, table_rows, visits_in

ROWS = table_rows(visits_in(NEW_YORK))
KEEP_ALL = Recipe(keep_duplicates=True)


def row(user: str, place: str, time: str) -> list[str]:
    """A visit in New York; `time` like `04-03 18:00:09`."""
    return [user, place, "40.7", "-74.0", f"2012-{time.replace(' ', 'T')}Z"]


def city_of(rows: list[list[str]], **options: object) -> City:
    frame = pl.read_csv(table(rows).encode(), infer_schema=False)
    return make_city([frame], Preparation(**options))  # type: ignore[arg-type]


def test_the_saved_city_equals_the_prepared_one(tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_text(table(ROWS))
    prepared = prepare([tmp_path / "visits.csv"], tmp_path / "city", Preparation())
    loaded = City.load(tmp_path / "city")
    assert checkins_in(loaded) == checkins_in(prepared)
    assert loaded.manifest == json.loads(json.dumps(prepared.manifest))
    assert prepared.manifest["dropped_rows"] == {}
    assert "too few" in prepared.manifest["rhythm"]["finding"]


def test_users_and_places_are_numbered_by_their_ids_in_byte_order() -> None:
    rows = [
        row(user, place, f"04-0{day} 10:00:00")
        for user in ("b", "é", "B", "a10", "a9")
        for day, place in enumerate(("z", "Z", "z", "Z"), start=1)
    ]
    city = city_of(rows)
    assert city.users[record.USER_ID].to_list() == ["B", "a10", "a9", "b", "é"]
    assert city.places[record.PLACE_ID].to_list() == ["Z", "z"]
    assert city.users[record.USER].to_list() == [0, 1, 2, 3, 4]


def test_numbers_of_users_and_places_have_no_gaps_after_cleaning() -> None:
    once = row("aaa", "aaa", "04-03 10:00:00")
    recipe = Recipe(core="once", min_place_checkins=2, min_user_checkins=2)
    city = city_of([once, *ROWS], recipe=recipe)
    assert "aaa" not in city.users[record.USER_ID]
    assert "aaa" not in city.places[record.PLACE_ID]
    assert city.users[record.USER].to_list() == list(range(city.users.height))
    assert city.places[record.PLACE].to_list() == list(range(city.places.height))
    assert city.checkins[record.CHECKIN].to_list() == list(range(city.checkins.height))
    assert city.places.schema == record.PLACE_SCHEMA


def test_a_duplicate_of_the_target_comes_before_it_and_never_after() -> None:
    last = row("u", "b", "04-07 20:00:00")
    days = [row("u", place, f"04-0{day} 10:00:00") for day, place in enumerate("bab", start=1)]
    rows = [last, *days, last]
    city = city_of(rows, recipe=KEEP_ALL)
    trajectories = city.trajectories
    (target,) = city.targets("test")
    history = trajectories.histories_before(np.array([target]))
    assert history.place.tolist() == [1, 0, 1, 1]
    assert (history.at_us <= trajectories.at_us[target]).all()
    assert (np.diff(history.at_us) >= 0).all()
    without = city_of(rows)
    assert without.checkins.height == 4


def test_local_offsets_follow_daylight_saving() -> None:
    times = ["03-11 06:59:00", "03-11 07:00:00", "11-04 05:30:00", "11-04 06:30:00"]
    city = city_of([row("u", "a", time) for time in times])
    assert city.checkins[record.OFFSET].to_list() == [-300, -240, -240, -300]


def test_a_local_time_that_occurred_twice_means_its_first_occurrence() -> None:
    rows = [[*r[:4], r[4].removesuffix("Z")] for r in (row("u", "a", "11-04 01:30:00"), *ROWS)]
    city = city_of(rows, naive_times="local")
    assert ("u", "a", "2012-11-04T05:30:00+00:00") in checkins_in(city)


def test_the_counts_of_the_manifest_are_those_of_the_city() -> None:
    prepared = city_of(
        [*ROWS, row("lonely", NEW_YORK.places[0].id, "04-03 18:00:09")],
        max_place_spread_km=50,
    )
    manifest, city = prepared.manifest, prepared
    assert manifest["checkins"] == city.checkins.height == 16
    assert manifest["users"] == city.users.height == 4
    assert manifest["left_out"] == 1
    parts = manifest["train"] + manifest["validation"] + manifest["test"] + manifest["left_out"]
    assert parts == 16
    assert manifest["revisit_share"] == 1.0
    assert manifest["kind"] == "city"


def test_a_wrong_output_folder_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    (tmp_path / "city").write_text("mine")
    with refused(BadInput):
        prepare([tmp_path / "gone.csv"], tmp_path / "city", Preparation(), overwrite=True)


@pytest.mark.parametrize("has_types", [True, False])
def test_a_data_frame_is_a_source_like_a_file_and_nothing_is_written(
    tmp_path: Path, has_types: bool
) -> None:
    (tmp_path / "visits.csv").write_text(table(ROWS))
    frame = pl.read_csv(table(ROWS).encode(), infer_schema=has_types, try_parse_dates=has_types)
    city = make_city([frame], Preparation())
    of_file = make_city([tmp_path / "visits.csv"], Preparation())
    assert city.fingerprint == of_file.fingerprint
    assert [path.name for path in tmp_path.iterdir()] == ["visits.csv"]
    origin = {"frame": "data frame 1", "layout": "table", "rows": 15}
    assert city.manifest["sources"] == [origin]
    city.save(tmp_path / "saved")
    assert City.load(tmp_path / "saved").manifest == json.loads(json.dumps(city.manifest))


def test_a_place_column_with_too_few_places_is_refused() -> None:
    rows = [
        row(f"u{n % 9}", "Independent", f"04-{1 + n % 29:02} 10:{n % 59:02}:09") for n in range(900)
    ]
    frame = pl.read_csv(table(rows).encode()).with_columns(POI_id=pl.int_range(900) % 50)
    with refused(BadInput):
        make_city([frame], Preparation(accept_rhythm=True))
    city = make_city([frame], Preparation(accept_rhythm=True, columns={"place": "POI_id"}))
    assert city.places.height == 50


def test_one_given_zone_makes_the_zone_column_irrelevant() -> None:
    frame = pl.read_csv(table(ROWS).encode()).with_columns(Zone=pl.lit(-240))
    city = make_city([frame], Preparation(zone="America/New_York"))
    assert set(city.places[record.ZONE]) == {"America/New_York"}


def test_numbers_in_the_zone_column_are_ignored_and_reported() -> None:
    frame = pl.read_csv(table(ROWS).encode()).with_columns(Zone=pl.lit(-240))
    city = make_city([frame], Preparation())
    assert set(city.places[record.ZONE]) == {"America/New_York"}
    assert city.manifest["remarks"] == [
        "numbers in the zone column are no zones: those places have the zone of their coordinates"
    ]
