"""The run of a service: loading, its card, and the city that fills a new store."""

from pathlib import Path

import pytest

from castpoi.core.errors import BrokenFolder, ModelNotReady
from castpoi.core.files import write_json
from castpoi.recommend.recommender import Recommender, load
from castpoi.serving.service import CityImport, model_card
from castpoi.serving.store import VisitStore
from tests.conftest import CommandLine
from tests.contract import odd_city
from tests.manifests import accept_changes
from tests.messages import refused
from tests.serving.live import service_of
from tests.serving.small_run import DAY, small_run


@pytest.fixture
def folder(castpoi: CommandLine, tmp_path: Path) -> Path:
    """A city, two runs of it and the result of one."""
    odd_city().save(tmp_path / "city")
    for run, method in (("run", "revisit"), ("other", "markov")):
        castpoi("train", tmp_path / "city", "--model", method, "--out", tmp_path / run)
    castpoi("evaluate", tmp_path / "run", "--out", tmp_path / "result")
    return tmp_path


def test_the_card_has_the_metrics_of_a_result_of_this_run(folder: Path) -> None:
    metrics = model_card(load(folder / "run")).metrics
    assert metrics is not None
    assert 0 < (metrics["MRR"] or 0.0) <= 1
    assert model_card(load(folder / "other")).metrics is None


def test_the_card_has_no_metrics_of_a_former_run_of_the_folder(folder: Path) -> None:
    accept_changes(folder / "run", started_utc="2030-01-01T00:00:00+00:00")
    assert model_card(load(folder / "run")).metrics is None


def test_the_card_has_no_metrics_of_the_validation_split(
    castpoi: CommandLine, folder: Path
) -> None:
    run, result = folder / "early", folder / "early result"
    words = ["--model", "revisit", "--holdout", "validation", "--out", run]
    castpoi("train", folder / "city", *words)
    assert castpoi("evaluate", run, "--split", "validation", "--out", result).code == 0
    assert model_card(load(run)).metrics is None


def test_in_a_demo_the_card_has_the_metrics_of_its_method(
    castpoi: CommandLine, folder: Path
) -> None:
    city, result = folder / "city", folder / "results" / "markov"
    castpoi("evaluate", "--city", city, "--model", "markov", "--out", result)
    assert model_card(load(folder / "other")).metrics is None
    write_json(folder / "manifest.json", {"kind": "demo"})
    assert (model_card(load(folder / "other")).metrics or {})["MRR"]


def test_a_run_that_cannot_be_read_does_not_replace_the_current_one(
    recommender: Recommender, tmp_path: Path
) -> None:
    def broken() -> Recommender:
        raise BrokenFolder("damaged")

    service = service_of(recommender, tmp_path)
    with refused(ModelNotReady):
        _ = service.recommender
    service.load_run()
    service.load = broken
    with refused(BrokenFolder):
        service.load_run()
    assert service.recommender is recommender


def test_a_new_place_is_ranked_after_a_reload(recommender: Recommender, tmp_path: Path) -> None:
    run, places = small_run(tmp_path), tmp_path / "new.csv"
    places.write_text("place,lat,lon\n")
    service = service_of(recommender, tmp_path)
    service.load = lambda: load(run, places=places)
    service.load_run()
    assert service.card().places == 5
    with places.open("a") as table:
        table.write("bistro,40.7001,-74.0\n")
    service.load_run()
    assert service.card().places == 6
    assert "bistro" in {each.place for each in service.recommender.recommend(DAY)}


def test_a_missing_city_leaves_the_store_empty_unless_it_was_given(
    folder: Path, tmp_path: Path
) -> None:
    run = load(folder / "run").run
    (folder / "city").rename(folder / "moved")
    store = VisitStore(f"sqlite:///{tmp_path}/visits.sqlite")
    reported: list[str] = []
    CityImport(folder=None, report=reported.append).fill(store, run)
    assert reported == [f"The store is empty: the run's city is no longer at {folder / 'city'}."]
    with refused(BrokenFolder):
        CityImport(folder=folder / "elsewhere", report=reported.append).fill(store, run)
    CityImport(folder=folder / "moved", report=reported.append).fill(store, run)
    assert store.counts() == (4, 14)
    store.close()
