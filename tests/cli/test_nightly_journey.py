"""The nightly loop of docs/nightly.md: export, prepare, train on everything, reload."""

from functools import partial
from pathlib import Path

import polars as pl

from castpoi.recommend.recommender import load
from castpoi.serving.service import CityImport, Service
from castpoi.serving.settings import ServiceSettings, default_store
from castpoi.serving.store import VisitStore
from tests.conftest import CommandLine
from tests.serving.live import Live, living
from tests.training.small import TINY_WORDS

QUICK = ("--threads", 1, *TINY_WORDS)


def next_night(castpoi: CommandLine, folder: Path, live: Live) -> str:
    """Run the four commands; the SHA-256 of the model that is served after them."""
    visits, city, run = folder / "visits.parquet", folder / "city", folder / "run"
    for words in (
        ("visits", "export", "--run", run, "--out", visits, "--overwrite"),
        ("data", "prepare", visits, "--out", city, "--overwrite"),
        ("train", city, "--holdout", "none", "--epochs-from", folder / "weekly",
         "--out", run, "--overwrite", *QUICK),
    ):  # fmt: skip
        ended = castpoi(*words)
        assert ended.code == 0, ended.err
    card = live.ask("POST", "/v1/model/reload").json()
    return str(card["model_sha256"])


def users_of(city: Path) -> set[str]:
    return set(pl.read_parquet(city / "users.parquet")["user_id"])


def test_a_posted_visit_changes_the_next_night_and_an_erased_user_is_gone(
    castpoi: CommandLine, tmp_path: Path
) -> None:
    town, city, run = tmp_path / "town.csv", tmp_path / "city", tmp_path / "run"
    castpoi("data", "synthesize", "--users", 12, "--places", 40, "--days", 30, "--out", town)
    castpoi("data", "prepare", town, "--out", city)
    castpoi("train", city, "--out", tmp_path / "weekly", "--epochs", 1, *QUICK)
    castpoi("train", city, "--holdout", "none", "--epochs", 1, "--out", run, *QUICK)
    place, somebody = pl.read_parquet(city / "places.parquet")["place_id"][0], "person-03"
    service = Service(
        settings=ServiceSettings(port=0),
        load=partial(load, run),
        store=VisitStore(default_store(run)),
        city=CityImport(folder=None, report=lambda sentence: None),
    )
    with living(service) as live:
        first = next_night(castpoi, tmp_path, live)
        assert next_night(castpoi, tmp_path, live) == first  # nothing has happened
        before = pl.read_parquet(city / "checkins.parquet").height
        live.post(user="person-04", place=place, at="2024-03-01T08:30:00Z")
        second = next_night(castpoi, tmp_path, live)
        assert second != first
        assert pl.read_parquet(city / "checkins.parquet").height == before + 1
        assert somebody in users_of(city)
        assert live.ask("DELETE", f"/v1/users/{somebody}").json()["erased"] > 0
        assert next_night(castpoi, tmp_path, live) not in (first, second)
        assert somebody not in users_of(city)
        assert somebody not in set(pl.read_parquet(tmp_path / "visits.parquet")["user"])
