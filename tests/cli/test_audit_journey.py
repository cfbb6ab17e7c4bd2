"""`castpoi data audit` from the command line: table, JSON and exit codes."""

from pathlib import Path

import polars as pl

from castpoi.checkins.city import City
from tests.cities import CAFE, OFFICE, small_city
from tests.conftest import CommandLine, documented_keys


def saved_city(folder: Path) -> Path:
    visits = [
        (1, CAFE, "2024-07-01 13:00"),
        (1, OFFICE, "2024-07-01 14:00"),
        (1, CAFE, "2024-07-02 13:00"),
        (1, OFFICE, "2024-07-02 14:00"),
    ]
    small_city(visits, ["train", "train", "validation", "test"]).save(folder)
    return folder


def test_a_sound_city_passes_with_exit_code_0(castpoi: CommandLine, tmp_path: Path) -> None:
    ended = castpoi("data", "audit", saved_city(tmp_path / "city"), "--json")
    assert ended.code == 0
    assert ended.json.keys() == documented_keys("data audit")
    assert ended.json["failed"] == 0
    assert {"check", "status", "finding"} == set(ended.json["checks"][0])


def test_a_tampered_city_ends_with_exit_code_1_and_names_the_check(
    castpoi: CommandLine, tmp_path: Path
) -> None:
    folder = saved_city(tmp_path / "city")
    places = City.load(folder).places.with_columns(pl.col("lat") + 0.01)
    places.write_parquet(folder / "places.parquet")
    ended = castpoi("data", "audit", folder)
    assert ended.code == 1
    assert "fingerprint" in ended.out
    assert "FAILED" in ended.out


def test_a_city_whose_tables_do_not_fit_together_is_checked(
    castpoi: CommandLine, tmp_path: Path
) -> None:
    folder = saved_city(tmp_path / "city")
    city = City.load(folder)
    city.places.with_columns(pl.lit("Mars/X").alias("zone")).write_parquet(
        folder / "places.parquet"
    )
    city.split.head(3).write_parquet(folder / "split.parquet")
    ended = castpoi("data", "audit", folder, "--json")
    assert ended.code == 1
    status = {check["check"]: check for check in ended.json["checks"]}
    assert status["fingerprint"]["status"] == "failed"
    assert status["local clock"]["finding"].startswith("cannot be checked")
