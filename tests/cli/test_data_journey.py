"""`castpoi data describe`, as a person types it."""

import gzip
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from rich.cells import cell_len

from castpoi.checkins import record
from castpoi.checkins.city import City, fingerprint_of
from castpoi.checkins.fetch import DATASETS
from castpoi.checkins.synthetic import SynthesisConfig, synthesize
from tests.checkins.file_server import FileServer, serving
from tests.checkins.small_sources import GOWALLA, NYC_TEXT, ROWS, TSMC2014, small
from tests.cities import CAFE, OFFICE, THEIR_PARTS, TWO_PEOPLE, small_city
from tests.conftest import CommandLine, documented_keys


@pytest.fixture
def city(tmp_path: Path) -> Path:
    folder = tmp_path / "smallville"
    small_city(TWO_PEOPLE, THEIR_PARTS).save(folder)
    return folder


def test_describe_prints_numbers_and_plots(castpoi: CommandLine, city: Path) -> None:
    ended = castpoi("data", "describe", city)
    assert (ended.code, ended.err) == (0, "")
    for words in (
        "smallville",
        "6 May 2024 to 8 May 2024, 3 days",
        "America/New_York",
        "Check-ins by local hour",
        "Distance to the user's next visit: median 400 m, 25.0% at the same place",
        "Gap to the user's next visit: median 1.2 h",
        "Gini coefficient",
    ):
        assert words in ended.out


@pytest.mark.parametrize("category", ["a category with a name too long for it", "珈琲店" * 12])
def test_no_line_is_wider_than_eighty_letters(
    castpoi: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, category: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    city = small_city(TWO_PEOPLE, THEIR_PARTS)
    places = city.places.with_columns(pl.lit(category).alias(record.CATEGORY))
    prints = fingerprint_of(city.checkins, city.users, places, city.split)
    replace(city, places=places, manifest={**city.manifest, "fingerprint": prints}).save(
        tmp_path / "city"
    )
    ended = castpoi("data", "describe", tmp_path / "city")
    assert ended.code == 0
    assert max(cell_len(line) for line in ended.out.splitlines()) <= 80


def test_json_has_the_documented_keys(castpoi: CommandLine, city: Path) -> None:
    content = castpoi("data", "describe", city, "--json").json
    assert content.keys() == documented_keys("data describe")
    assert set(content["checkins_per_user"]) == {
        *("min", "lower_quartile", "median", "upper_quartile", "mean", "max")
    }
    assert (content["revisit_share"], content["html"]) == (0.5, None)


def test_the_page_is_written_whole_and_alone(
    castpoi: CommandLine, city: Path, tmp_path: Path
) -> None:
    page = tmp_path / "new" / "city.html"
    ended = castpoi("data", "describe", city, "--html", page)
    assert ended.code == 0
    assert f"{page}: a page with charts and a map" in ended.out
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert list(page.parent.iterdir()) == [page]
    assert castpoi("data", "describe", city, "--html", page, "--overwrite", "--json").json[
        "html"
    ] == str(page)


def test_a_page_is_not_replaced_unasked(castpoi: CommandLine, city: Path, tmp_path: Path) -> None:
    page = tmp_path / "city.html"
    page.write_text("<!doctype html>mine")
    ended = castpoi("data", "describe", city, "--html", page)
    assert ended.code == 1
    assert f"{page} exists; choose another --html or replace it with --overwrite" in ended.err
    assert page.read_text() == "<!doctype html>mine"
    assert castpoi("data", "describe", city, "--html", page, "--overwrite").code == 0
    assert page.read_text(encoding="utf-8").endswith("</html>\n")


def test_what_is_not_a_page_is_never_replaced(
    castpoi: CommandLine, city: Path, tmp_path: Path
) -> None:
    table = tmp_path / "visits.csv"
    table.write_text("mine")
    ended = castpoi("data", "describe", city, "--html", table, "--overwrite")
    assert ended.code == 1
    assert f"{table} exists and is not a page; choose another --html" in ended.err
    assert table.read_text() == "mine"


@pytest.mark.parametrize("count", [0, 1])
def test_hardly_any_checkins_are_described_all_the_same(
    castpoi: CommandLine, tmp_path: Path, count: int
) -> None:
    small_city(TWO_PEOPLE[:count], ["train"] * count).save(tmp_path / "city")
    ended = castpoi("data", "describe", tmp_path / "city", "--html", tmp_path / "city.html")
    assert ended.code == 0
    assert ("no check-ins" in ended.out) == (count == 0)
    assert castpoi("data", "describe", tmp_path / "city", "--json").json["checkins"] == count


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


GZ = "loc-brightkite_totalCheckins.txt.gz"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving() as served:
        served.files = {GZ: GOWALLA, "dataset_tsmc2014.zip": TSMC2014}
        url = served.url("dataset_tsmc2014.zip")
        monkeypatch.setitem(DATASETS, "tky", small("tky", TSMC2014, url))
        brightkite = small("brightkite", GOWALLA, served.url(GZ), checksum=None)
        monkeypatch.setitem(DATASETS, "brightkite", brightkite)
        yield served


def test_fetch_says_what_came_and_what_to_do_next(
    castpoi: CommandLine, server: FileServer, tmp_path: Path
) -> None:
    ended = castpoi("data", "fetch", "brightkite", "--out", tmp_path)
    assert ended.code == 0
    assert f"{tmp_path / GZ}: downloaded and checked, 2,000 rows" in ended.out
    assert "(checksum not known)" in ended.out
    assert f"Next: castpoi data prepare {tmp_path / GZ} --out brightkite" in ended.out
    assert ended.err == ""
    again = castpoi("data", "fetch", "brightkite", "--out", tmp_path)
    assert again.code == 0
    assert "already there and checked" in again.out
    assert len(server.asked) == 1


def test_fetch_as_json_is_one_object(
    castpoi: CommandLine, server: FileServer, tmp_path: Path
) -> None:
    file = tmp_path / "dataset_TSMC2014_TKY.txt"
    ended = castpoi("data", "fetch", "tky", "--out", tmp_path, "--json")
    assert ended.code == 0
    content = ended.json
    assert content.keys() == documented_keys("data fetch")
    assert content.pop("seconds") >= 0
    assert content == {
        "dataset": "tky",
        "file": str(file),
        "bytes": 2 * len(NYC_TEXT),
        "rows": 2 * ROWS,
        "downloaded": True,
        "resumed": False,
        "verified": True,
        "checksum": "sha256 of dataset_tsmc2014.zip",
    }
    assert castpoi("data", "fetch", "tky", "--out", tmp_path, "--json").json["downloaded"] is False


SMALL = ("--users", 20, "--places", 60, "--days", 10)
CONFIG = SynthesisConfig(users=20, places=60, days=10)
BIG = ("--users", 10_000_000)
"""Would take minutes: a refusal must come before the work."""


def test_a_folder_holds_the_table_and_how_to_make_it_again(
    castpoi: CommandLine, tmp_path: Path
) -> None:
    out = tmp_path / "deep" / "town"
    ended = castpoi("data", "synthesize", *SMALL, "--seed", 3, "--out", out)
    assert ended.code == 0
    assert f"Next: castpoi data prepare {out / 'checkins.parquet'} --out CITY" in ended.out
    checkins = pl.read_parquet(out / "checkins.parquet")
    assert checkins.equals(synthesize(CONFIG, seed=3))
    parameters = json.loads((out / "synthesis.json").read_text())
    assert parameters["seed"] == 3
    assert parameters["checkins"] == checkins.height
    assert parameters["parameters"]["users"] == parameters["users"] == 20
    assert parameters["parameters"]["first_day"] == "2024-01-08"
    assert sorted(path.name for path in out.iterdir()) == ["checkins.parquet", "synthesis.json"]


def test_json_is_one_object_with_the_counts(castpoi: CommandLine, tmp_path: Path) -> None:
    out = tmp_path / "town.parquet"
    ended = castpoi("data", "synthesize", *SMALL, "--out", out, "--json")
    checkins = pl.read_parquet(out)
    assert ended.json.keys() == documented_keys("data synthesize")
    assert ended.json["checkins"] == checkins.height
    assert ended.json["users"] == 20
    assert ended.json["places"] == checkins["place"].n_unique()
    assert ended.json["out"] == ended.json["table"] == str(out)
    assert ended.json["seconds"] >= 0
    assert ended.json["seed"] == 42


@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz", "tsv.gz", "CSV"])
def test_a_text_table_has_plain_instants_in_utc(
    castpoi: CommandLine, tmp_path: Path, ending: str
) -> None:
    out = tmp_path / f"town.{ending}"
    assert castpoi("data", "synthesize", *SMALL, "--seed", 3, "--out", out).code == 0
    content = gzip.decompress(out.read_bytes()) if ending.endswith("gz") else out.read_bytes()
    head, first = content.decode().splitlines()[:2]
    separator = "\t" if ending.startswith("tsv") else ","
    assert head.split(separator) == ["user", "place", "lat", "lon", "time", "category", "name"]
    made = synthesize(CONFIG, seed=3)
    assert first.split(separator)[4] == made["time"][0].strftime("%Y-%m-%dT%H:%M:%SZ")
    assert content.count(b"\n") == made.height + 1
    assert list(tmp_path.iterdir()) == [out]


def test_what_is_not_a_synthetic_city_is_never_touched(
    castpoi: CommandLine, tmp_path: Path
) -> None:
    folder, file, table = tmp_path / "photos", tmp_path / "letter.txt", tmp_path / "a.csv"
    folder.mkdir()
    (folder / "cat.jpg").write_text("meow")
    file.write_text("dear")
    table.mkdir()
    own = tmp_path / "visits.csv"
    own.write_text(
        "user,place,lat,lon,time,category,name\nann,cafe,40.7,-74.0,1333476009,Cafe,Joe\n"
    )
    broken = tmp_path / "visits.parquet"
    broken.write_text("mine")
    for out, words in (
        (folder, "exists and is not a synthetic city; choose another --out"),
        (own, "exists and is not a synthetic city; choose another --out"),
        (broken, "exists and is not a synthetic city; choose another --out"),
        (file, "is a file without the suffix of a table"),
        (table, "is a folder with the suffix of a table; choose another --out"),
    ):
        ended = castpoi("data", "synthesize", *BIG, "--out", out, "--overwrite")
        assert ended.code == 1
        assert f"{out} {words}" in ended.err
    assert (folder / "cat.jpg").read_text() == "meow"
    assert file.read_text() == "dear"
    assert "Joe" in own.read_text()
    assert broken.read_text() == "mine"


@pytest.mark.parametrize("name", ["town.xlsx", "town.csv.zip", "town.json"])
def test_an_ending_that_cannot_be_written_is_refused(
    castpoi: CommandLine, tmp_path: Path, name: str
) -> None:
    out = tmp_path / name
    ended = castpoi("data", "synthesize", *BIG, "--out", out)
    assert ended.code == 1
    assert f"{out} ends in {out.suffix}, which cannot be written; use .parquet" in ended.err
    assert "no suffix for a folder" in ended.err
    assert not out.exists()
