"""`castpoi data describe`, as a person types it."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from rich.cells import cell_len

from castpoi.checkins import record
from castpoi.checkins.city import fingerprint_of
from tests.cities import THEIR_PARTS, TWO_PEOPLE, small_city
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
