"""The export of a visit store, and its command."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import castpoi as library
from castpoi.cli.serve import page_maker
from castpoi.core.errors import BadInput, BrokenFolder
from castpoi.methods.run import Run
from castpoi.recommend.recommender import Recommender
from castpoi.serving import export
from castpoi.serving.export import export_visits
from castpoi.serving.service import model_card, visits_of_city
from castpoi.serving.store import VisitStore
from tests.conftest import CommandLine, documented_keys
from tests.contract import odd_city
from tests.messages import refused
from tests.serving.live import Live, living, service_of
from tests.serving.stores import visit

AT_US = 1_333_440_000_000_123


def test_all_visits_are_exported_in_utc_for_their_owner_alone(
    store: VisitStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "CHUNK", 2)
    visits = [visit("ann", "cafe", AT_US + number, str(number)) for number in range(4)]
    store.add([*visits, visit("bob", "park", 0)])
    for ending, time in (("parquet", "2012-04-03 08:00:00.000123"), ("csv", "2012-04-03T08:00:00")):
        out = tmp_path / f"visits.{ending}"
        counts = export_visits(store, out)
        assert counts == {"visits": 5, "users": 2, "places": 2, "left_out": 0}
        assert out.stat().st_mode & 0o777 == 0o600
        table = pl.read_parquet(out) if ending == "parquet" else pl.read_csv(out)
        assert table.columns == ["user", "place", "time"]
        assert str(table["time"].cast(pl.String).sort()[1]).startswith(time)
    assert not [each for each in tmp_path.iterdir() if each.is_dir()]


def test_a_user_who_is_erased_during_an_export_does_not_appear(
    store: VisitStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.add([visit("ann", "cafe", 1), visit("bob", "park", 2)])
    chunks = store.chunks

    def erasing_later(**options: Any) -> Iterator[Any]:
        yield from chunks(**options)
        store.erase("ann")
        store.add([visit("ann", "office", 3)])

    monkeypatch.setattr(store, "chunks", erasing_later)
    assert export_visits(store, tmp_path / "visits.parquet")["users"] == 1
    assert pl.read_parquet(tmp_path / "visits.parquet")["user"].to_list() == ["bob"]


def test_places_get_their_details_and_others_are_left_out(
    recommender: Recommender, store: VisitStore, tmp_path: Path
) -> None:
    store.add([visit("ann", "cafe", AT_US), visit("ann", "a new place", AT_US)])
    counts = export_visits(store, tmp_path / "visits.csv", recommender.run.places)
    assert counts == {"visits": 1, "users": 1, "places": 1, "left_out": 1}
    (row,) = pl.read_csv(tmp_path / "visits.csv").rows(named=True)
    assert list(row) == ["user", "place", "time", "lat", "lon", "category", "name"]
    assert row["lat"] == recommender.places.lat[recommender.places.number_of["cafe"]]


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_city_that_was_imported_is_prepared_from_the_export_without_doubled_visits(
    ending: str, recommender: Recommender, tmp_path: Path
) -> None:
    city, out = odd_city(), tmp_path / f"visits.{ending}"
    store = VisitStore(f"sqlite:///{tmp_path}/visits.sqlite")
    store.import_city(visits_of_city(city), fingerprint=city.fingerprint)
    store.add([visit("user 1", "cafe", AT_US + 1_000_000)])
    export_visits(store, out, recommender.run.places)
    store.close()
    old = city.checkins.join(city.users, on="user").join(city.places, on="place").select(
        *("lat", "lon", "category"), user="user_id", place="place_id", time="at_utc",
    )  # fmt: skip
    assert library.prepare(out).checkins.height == 15
    old.write_parquet(tmp_path / "old.parquet")
    both = library.prepare([tmp_path / "old.parquet", out])
    assert both.fingerprint == library.prepare(out).fingerprint


def test_an_empty_store_is_refused(store: VisitStore, tmp_path: Path) -> None:
    with refused(BadInput):
        export_visits(store, tmp_path / "visits.csv")
    assert list(tmp_path.glob("visits.csv*")) == []


def test_the_command_uses_the_store_of_the_run(
    castpoi: CommandLine, run_folder: Path, tmp_path: Path
) -> None:
    run, out = tmp_path / "run", tmp_path / "visits.parquet"
    run.symlink_to(run_folder)
    absent = castpoi("visits", "export", "--run", run, "--out", out)
    assert absent.code == 1
    assert "there is no visit store at sqlite:///" in absent.err
    assert sorted(each.name for each in tmp_path.iterdir()) == ["run"]
    store = VisitStore(f"sqlite:///{run}.visits.sqlite")
    store.add([visit("ann", "cafe", AT_US), visit("ann", "a new place", AT_US)])
    store.close()
    ended = castpoi("visits", "export", "--run", run, "--out", out, "--json")
    assert ended.code == 0, ended.err
    assert ended.json.keys() == documented_keys("visits export")
    assert "Left out 1 visits at places that the run does not have" in ended.err
    assert "already exists" in castpoi("visits", "export", "--run", run, "--out", out).err
    again = castpoi("visits", "export", "--run", run, "--out", out, "--overwrite")
    assert "1 visits of 1 users at 1 places" in again.out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--out", "x.csv"), "Give --store or --run"),
        (
            ("--store", "sqlite:///x", "--places", "y", "--out", "x.csv"),
            "with --places, give --run",
        ),
        (("--store", "sqlite:///x", "--out", "x.xls"), "end it in .parquet or .csv"),
    ],
)
def test_wrong_usage_of_the_export_is_a_sentence(
    castpoi: CommandLine, words: tuple[str, ...], sentence: str
) -> None:
    assert sentence in castpoi("visits", "export", *words).err


def test_the_page_of_the_city_is_made_once_for_a_run(
    recommender: Recommender, tmp_path: Path
) -> None:
    made: list[str] = []

    def page_of(run: Run) -> str:
        made.append(run.method)
        return "<!doctype html>a city"

    service = service_of(recommender, tmp_path)
    service.page_of = page_of
    with living(service) as live:
        for _ in range(2):
            answer = live.ask("GET", "/v1/city")
            assert answer.headers["content-type"] == "text/html; charset=utf-8"
            assert answer.text == "<!doctype html>a city"
    assert made == ["castpoi"]


def test_without_the_packages_for_it_the_page_of_the_city_is_refused(
    recommender: Recommender, tmp_path: Path
) -> None:
    service = service_of(recommender, tmp_path)
    service.load_run()
    with refused(BrokenFolder):
        service.city_page()


def test_the_command_makes_the_page_of_the_city_of_a_run(recommender: Recommender) -> None:
    page_of = page_maker(None)
    assert page_of is not None
    page = page_of(recommender.run)
    assert page.startswith("<!doctype html>")
    assert f"<h1>{model_card(recommender).city}</h1>" in page


def test_the_card_has_the_name_of_the_city_and_its_main_zone(recommender: Recommender) -> None:
    card = model_card(recommender)
    assert recommender.run.city is not None
    assert card.city == recommender.run.city.parent.name  # the folder of the city is called city
    assert card.zone == "America/New_York"


def test_the_outline_is_a_box_of_sea_below_the_land_around_the_places(live: Live) -> None:
    outline = live.ask("GET", "/v1/land").json()
    kinds = [feature["properties"]["kind"] for feature in outline["features"]]
    assert kinds[0] == "sea"
    assert set(kinds[1:]) == {"land"}
    box = outline["features"][0]["geometry"]["coordinates"][0]
    (west, south), (east, north) = box[0], box[2]
    places = live.ask("GET", "/v1/places").json()["places"]
    assert all(west < place["lon"] < east for place in places)
    assert all(south < place["lat"] < north for place in places)
    for feature in outline["features"]:
        (ring,) = feature["geometry"]["coordinates"]
        assert ring[0] == ring[-1]
        assert all(west <= lon <= east and south <= lat <= north for lon, lat in ring)
