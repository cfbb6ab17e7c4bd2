"""Cold places: ranked from the day they open, without a visit and without training."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import castpoi
from castpoi.core.errors import BadInput, NoCandidateLeft
from castpoi.recommend.changed_places import closed_ids
from castpoi.recommend.recommender import Recommender, load
from castpoi.recommend.request import Visit
from castpoi.training.train import train
from tests.messages import refused
from tests.serving.small_run import DAY, OUR_PARTS, small_run

KNOWN = ["cafe", "office", "park", "station", "theatre"]
BISTRO = pl.DataFrame(
    {
        "place": ["bistro", "kiosk"],
        "lat": [40.7001, 40.7136],
        "lon": [-74.0001, -74.0],
        "name": ["Bistro", None],
        "category": ["food", "Newspapers"],
    }
)
"""A place beside the cafe, of its category, and one beside the park of a category of its own."""
CSV = "Place ID,Latitude,Longitude,Name,Category\nbistro,40.7001,-74.0001,Bistro,food\n"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    parts = OUR_PARTS | {"candidate_conditioning": False}
    return small_run(tmp_path_factory.mktemp("run"), **parts)


@pytest.fixture
def cold(run: Path) -> Recommender:
    return castpoi.load(run, places=BISTRO)


def test_a_cold_place_can_be_recommended_as_any_other(cold: Recommender) -> None:
    found = {each.place: each for each in cold.recommend(DAY, explain=True)}
    assert set(found) == {*KNOWN, "bistro", "kiosk"}
    bistro = found["bistro"]
    assert (bistro.name, bistro.category, bistro.lat) == ("Bistro", "food", 40.7001)
    assert bistro.distance_km == pytest.approx(4.0, abs=0.1)
    assert not bistro.visited
    assert bistro.terms is not None
    assert sum(bistro.terms.values()) == pytest.approx(bistro.score)
    assert bistro.terms["revisit"] == 0.0
    assert sum(each.probability for each in found.values()) == pytest.approx(1.0)


def test_a_new_place_is_ranked_as_the_nearest_known_one_of_its_category(
    cold: Recommender,
) -> None:
    """The cafe, which is not visited here; the kiosk is beside the park, of no known category."""
    visits = [Visit("office", "2012-04-03T12:00:00-04:00")]
    terms = {each.place: each.terms or {} for each in cold.recommend(visits, explain=True)}
    for new, known in (("bistro", "cafe"), ("kiosk", "park")):
        for term in ("base", "popularity"):
            assert terms[new][term] == pytest.approx(terms[known][term], abs=1e-5)


@pytest.mark.parametrize("changes", [{}, {"known_time": True}, {"candidate_conditioning": False}])
def test_every_castpoi_ranks_new_places(tmp_path: Path, changes: dict[str, Any]) -> None:
    recommender = load(small_run(tmp_path, **changes), places=BISTRO)
    at = "2012-04-03T23:00:00-04:00" if changes.get("known_time") else None
    assert "bistro" in {each.place for each in recommender.recommend(DAY, at=at)}


def test_a_history_may_visit_a_cold_place_in_its_local_time(cold: Recommender) -> None:
    lunch = Visit("bistro", "2012-04-04T12:00:00")  # the wall clock of New York
    answer = cold.recommend([*DAY, lunch], explain=True)
    bistro = next(each for each in answer if each.place == "bistro")
    assert not answer.remarks
    assert bistro.visited
    assert bistro.distance_km == 0.0
    assert bistro.terms is not None
    assert bistro.terms["revisit"] != 0.0


def test_filters_and_empty_histories_include_cold_places(cold: Recommender) -> None:
    (kiosk,) = cold.recommend(DAY, categories=["Newspapers"])
    assert kiosk.place == "kiosk"
    assert kiosk.sentence
    assert {each.place for each in cold.recommend(DAY, candidates=["bistro", "cafe"])} == {
        "bistro",
        "cafe",
    }
    assert "bistro" in {each.place for each in cold.recommend([], near=(40.70, -74.0))}


@pytest.mark.parametrize(
    "text", [CSV, CSV.replace(",", "\t"), "lon;lat;place\n-74.0001;40.7001; bistro \n"]
)
def test_cold_places_are_read_from_a_file(run: Path, tmp_path: Path, text: str) -> None:
    (tmp_path / "new").write_text(text)
    recommender = castpoi.load(run, places=tmp_path / "new")
    assert recommender.places.ids == [*KNOWN, "bistro"]
    assert recommender.places.zones == ["America/New_York"]


@pytest.mark.parametrize(
    "rows",
    [
        "cafe,40.7,-74.0",
        "bar,40.7,-74.0",
        "pub,,-74.0",
        "pub,40.7, ",
        " ,40.7,-74.0",
        "pub,95,-74.0",
        "pub,40.7,west",
        "pub,nan,-74.0",
    ],
)
def test_the_error_for_an_invalid_place_names_its_row(run: Path, tmp_path: Path, rows: str) -> None:
    (tmp_path / "new.csv").write_text(f"place,lat,lon\nbar,40.71,-74.0\n{rows}\n")
    with refused(BadInput):
        load(run, places=tmp_path / "new.csv")


def test_a_table_without_a_needed_column_is_rejected(run: Path) -> None:
    with refused(BadInput):
        load(run, places=BISTRO.drop("lon"))


def test_a_counting_baseline_cannot_rank_cold_places(run_folder: Path, tmp_path: Path) -> None:
    train(run_folder.parent / "city", tmp_path / "run", method="popularity", seed=0)
    with refused(BadInput) as error:
        load(tmp_path / "run", places=BISTRO)
    assert "--model castpoi-next --out RUN" in str(error.value)


def test_a_closed_place_is_not_recommended_but_remains_a_visit(run_folder: Path) -> None:
    recommender = load(run_folder, closed=["cafe"])
    answer = recommender.recommend(DAY, candidates=["cafe", "park"], explain=True)
    assert [each.place for each in answer] == ["park"]
    assert answer.remarks == ("1 candidate was left out: closed",)
    (park,) = load(run_folder).recommend(DAY, candidates=["park"], explain=True)
    (alone,) = answer
    assert alone == replace(park, rank=alone.rank)
    assert (alone.rank or 0) < (park.rank or 0)  # the closed place was before it
    assert "cafe" not in {each.place for each in recommender.recommend([])}
    with refused(NoCandidateLeft):
        recommender.recommend(DAY, candidates=["cafe"])


@pytest.mark.parametrize(
    ("columns", "closed"),
    [
        ({}, {"1", "2", "3"}),
        ({"date_closed": ["2019-04-01", None, "2999-01-01"]}, {"1"}),
        ({"date_closed": ["some year", "", None]}, {"1"}),
        ({"operating_status": ["open", "permanently_closed", None]}, {"2"}),
    ],
)
def test_dates_and_states_of_a_table_say_what_is_closed(
    tmp_path: Path, columns: dict[str, Any], closed: set[str]
) -> None:
    table = pl.DataFrame({"place": [1, 2, 3], **columns})
    table.write_csv(tmp_path / "closed.csv")
    assert closed_ids(table) == closed == closed_ids(tmp_path / "closed.csv")
    assert closed_ids(None, table) == (closed if columns else set())


def test_a_table_without_places_is_refused() -> None:
    with refused(BadInput):
        closed_ids(pl.DataFrame({"date_closed": ["2019-04-01"]}))
