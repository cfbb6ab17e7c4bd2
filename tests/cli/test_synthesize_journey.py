"""`castpoi data synthesize`, as a person and as a script would use it."""

import gzip
import json
from pathlib import Path

import polars as pl
import pytest

from castpoi.checkins.synthetic import SynthesisConfig, synthesize
from tests.conftest import CommandLine, documented_keys

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
    assert parameters["parameters"]["exploration_gamma"] == 0.21
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
