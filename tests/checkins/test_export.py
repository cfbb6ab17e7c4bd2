"""A city leaves castpoi as files that other tools read, and comes back the same."""

import json
import stat
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from castpoi.checkins.city import City
from castpoi.checkins.export import export_recbole
from castpoi.checkins.prepare import Preparation, make_city
from castpoi.core.errors import BadInput
from castpoi.geo import wkb
from tests.conftest import CommandLine
from tests.messages import refused
from tests.sources import CALIFORNIA, NEW_YORK, checkins_in, table, table_rows, visits_in


@pytest.fixture
def city() -> City:
    rows = table_rows(visits_in(NEW_YORK))
    places = {p.id: [p.category, f'"{p.name}"'] for p in NEW_YORK.places}
    header = ("user", "place", "lat", "lon", "time", "category", "name")
    frame = pl.read_csv(table([[*row, *places[row[1]]] for row in rows], header).encode())
    return make_city([frame], Preparation())


def test_the_atomic_files_of_a_city_are_the_city_again(city: City, tmp_path: Path) -> None:
    export_recbole(city, tmp_path / "nyc.inter")
    assert (tmp_path / "nyc.inter").read_text().splitlines()[:2] == [
        "user_id:token\titem_id:token\ttimestamp:float\tsplit:token",
        "12\t49bbd6c0f964a520f4531fe3\t1333476009.0\ttrain",
    ]
    for split in ("leave-one-out", "given"):
        again = make_city([tmp_path / "nyc.inter"], Preparation(split=split))
        assert again.fingerprint == city.fingerprint
        assert again.places.equals(city.places)


def test_check_ins_that_are_left_out_are_not_exported(tmp_path: Path) -> None:
    rows = table_rows(visits_in(CALIFORNIA))
    frame = pl.DataFrame([*rows, ["9", *rows[0][1:]]], list("uplot"), orient="row")
    names = dict(zip(("user", "place", "lat", "lon", "time"), "uplot", strict=True))
    left_out = make_city(
        [frame.cast({"l": pl.Float64, "o": pl.Float64})], Preparation(columns=names)
    )
    assert left_out.checkins_by_part["left out"] == 1
    export_recbole(left_out, tmp_path / "ca.inter")
    assert len((tmp_path / "ca.inter").read_text().splitlines()) == 1 + len(rows)


def test_the_command_writes_private_files_and_replaces_them_on_request(
    castpoi: CommandLine, city: City, tmp_path: Path
) -> None:
    city.save(tmp_path / "city")
    words = ("data", "export", tmp_path / "city", "--out", tmp_path / "nyc.inter")
    assert castpoi(*words, "--json").json["checkins"] == 15
    assert stat.S_IMODE((tmp_path / "nyc.inter").stat().st_mode) == 0o600
    assert castpoi(*words).code == 1
    assert castpoi(*words, "--overwrite").code == 0
    assert checkins_in(make_city([tmp_path / "nyc.inter"], Preparation())) == checkins_in(city)


@pytest.mark.parametrize("name", ["nyc.csv", "taken.inter"])
def test_a_name_that_cannot_be_written_is_refused(city: City, tmp_path: Path, name: str) -> None:
    (tmp_path / "taken.item").touch()
    with refused(BadInput):
        export_recbole(city, tmp_path / name)


def test_the_places_of_a_saved_city_are_geoparquet(city: City, tmp_path: Path) -> None:
    city.save(tmp_path / "city")
    path = tmp_path / "city" / "places.parquet"
    geo: dict[str, Any] = json.loads(pl.read_parquet_metadata(path)["geo"])
    column = geo["columns"][geo["primary_column"]]
    assert (geo["version"], column) == ("1.1.0", {"encoding": "WKB", "geometry_types": ["Point"]})
    points = pl.read_parquet(path).select(
        wkb.lat_of(pl.col("geometry")).alias("lat"), wkb.lon_of(pl.col("geometry")).alias("lon")
    )
    assert points.equals(city.places.select("lat", "lon"))
    assert City.load(tmp_path / "city").places.equals(city.places)
