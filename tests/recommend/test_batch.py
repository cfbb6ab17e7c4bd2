"""Many people at once: the answers of single requests, and jobs that survive a kill."""

import json
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import castpoi
from castpoi.core.errors import BadInput
from castpoi.core.progress import Silence
from castpoi.recommend import batch
from castpoi.recommend.batch import recommend_people, write_batch
from castpoi.recommend.people import People
from castpoi.recommend.recommender import Recommender
from tests.serving.small_run import OUR_PARTS, run_of


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "BLOCK", 2)
    monkeypatch.setattr(batch, "PART", 3)


@pytest.fixture(params=["recommender", "near_sighted", "unread"])
def any_recommender(request: pytest.FixtureRequest) -> Recommender:
    found: Recommender = request.getfixturevalue(request.param)
    return found


def everybody(recommender: Recommender, **common: Any) -> People:
    assert recommender.users is not None
    return People(users=recommender.users.ids, common=common)


def one_by_one(recommender: Recommender, people: People) -> list[dict[str, Any]]:
    rows = []
    for user in people.users:
        answer = recommender.recommend(user=user, **people.common)
        for rank, each in enumerate(answer, start=1):
            rows.append({"user": user, "rank": rank, **asdict(each)})
    return rows


@pytest.mark.parametrize("common", [{}, {"k": 3}, {"new_only": True}, {"max_per_category": 1}])
def test_a_batch_has_the_answers_of_single_requests(
    any_recommender: Recommender, common: dict[str, Any]
) -> None:
    people = everybody(any_recommender, **common)
    frame, rejected = recommend_people(any_recommender, people)
    alone = one_by_one(any_recommender, people)
    assert rejected.is_empty()
    exact = ["user", "rank", "place", "name", "category", "lat", "lon", "visited"]
    for row, single in zip(frame.to_dicts(), alone, strict=True):
        assert {name: row[name] for name in exact} == {name: single[name] for name in exact}
        for name in ("score", "probability", "distance_km"):
            assert row[name] == pytest.approx(single[name], abs=1e-5)


@pytest.mark.parametrize(
    ("seed", "changes"), [(1, OUR_PARTS | {"candidate_conditioning": False}), (2, {"window": 20})]
)
def test_two_hundred_users_of_a_city_get_the_answers_of_single_requests(
    monkeypatch: pytest.MonkeyPatch, seed: int, changes: dict[str, Any]
) -> None:
    monkeypatch.setattr(batch, "BLOCK", 64)
    city = castpoi.prepare(castpoi.synthesize(users=200, places=900, days=60, seed=seed))
    recommender = castpoi.load(run_of(city, **changes), city=city, shortlist=100)
    people = everybody(recommender)
    frame, _ = recommend_people(recommender, people)
    alone = pl.DataFrame(one_by_one(recommender, people)).select(frame.columns)
    assert len(people) == 200
    for name in ("score", "probability", "distance_km"):
        assert (frame[name] - alone[name]).abs().max() < 2e-5  # type: ignore[operator]
    differ = frame["place"] != alone["place"]  # neighbours whose scores differ by rounding
    assert differ.mean() < 0.005  # type: ignore[operator]
    assert (frame["user"] == alone["user"]).all()


def test_a_batch_may_explain_with_terms_and_sentences(near_sighted: Recommender) -> None:
    frame, _ = recommend_people(near_sighted, everybody(near_sighted, explain=True, k=2))
    terms = frame.select(pl.sum_horizontal("^term_.*$")).to_series()
    assert (terms - frame["score"]).abs().max() < 1e-4  # type: ignore[operator]
    assert frame["sentence"].null_count() == 0


def test_a_bad_user_is_set_aside_with_the_reason(recommender: Recommender) -> None:
    assert recommender.users is not None
    users = pl.concat([pl.Series(["nobody"]), recommender.users.ids])
    frame, rejected = recommend_people(recommender, People(users=users))
    assert rejected["user"].to_list() == ["nobody"]
    assert "no check-ins in the run's city" in rejected["error"][0]
    assert set(frame["user"]) == set(recommender.users.ids)


def test_people_have_filters_of_their_own(recommender: Recommender) -> None:
    assert recommender.users is not None
    first, second = recommender.users.ids[:2]
    table = pl.DataFrame(
        {"user": [first, second], "category": ["Food", None], "within_km": [None, 2.0],
         "near_lat": [None, 40.7], "near_lon": [None, -74.0]}
    )  # fmt: skip
    frame, _ = recommend_people(recommender, People.of_users(table))
    assert set(frame.filter(pl.col("user") == first)["category"]) == {"Food"}
    assert frame.filter(pl.col("user") == second)["distance_km"].max() <= 2.0  # type: ignore[operator]


@pytest.mark.parametrize("typed", [True, False])
def test_visits_of_strangers_are_a_table(recommender: Recommender, typed: bool) -> None:
    at = [datetime(2012, 4, 3, hour, tzinfo=UTC) for hour in (12, 13, 14)]
    table = pl.DataFrame({"user": [7, 8, 7], "place": ["cafe", "park", "office"], "time": at})
    if not typed:
        table = table.with_columns(pl.col("time").dt.epoch("s").cast(pl.String))
    frame, _ = recommend_people(recommender, People.of_visits(table, k=3))
    history = [("cafe", at[0].isoformat()), ("office", at[2].isoformat())]
    alone = recommender.recommend(history, k=3)
    assert frame["user"].to_list() == ["7"] * 3 + ["8"] * 3
    assert frame["place"].to_list()[:3] == [each.place for each in alone]


def test_a_visit_without_a_time_is_refused_with_its_row() -> None:
    table = pl.DataFrame({"user": [1, 1], "place": ["cafe", "cafe"], "time": ["12:00", "x"]})
    with pytest.raises(BadInput, match=r"row 1 of the visits has '12:00'"):
        People.of_visits(table)


def test_a_person_named_twice_is_refused() -> None:
    with pytest.raises(BadInput, match="name a person twice"):
        People(users=pl.Series(["a", "b", "a"]))


@pytest.mark.parametrize("name", ["recs.parquet", "recs.csv", "recs.jsonl", "recs"])
def test_a_job_writes_the_frame(recommender: Recommender, tmp_path: Path, name: str) -> None:
    people, out = everybody(recommender, k=2), tmp_path / name
    summary = write_batch(recommender, people, out)
    frame, _ = recommend_people(recommender, people)
    reads: dict[str, Any] = {".csv": pl.read_csv, ".jsonl": pl.read_ndjson}
    written = reads.get(out.suffix, pl.read_parquet)(
        out / "part-*.parquet" if name == "recs" else out
    )
    assert written["place"].to_list() == frame["place"].to_list()
    assert summary["recommendations"] == frame.height
    assert (out / "_SUCCESS").exists() == (name == "recs")
    assert not (tmp_path / f"{name}.parts").exists()


def test_a_job_writes_points(recommender: Recommender, tmp_path: Path) -> None:
    people, out = everybody(recommender, k=2), tmp_path / "recs.geojson"
    write_batch(recommender, people, out)
    frame, _ = recommend_people(recommender, people)
    features = json.loads(out.read_text())["features"]
    assert [each["geometry"]["coordinates"] for each in features] == [
        list(point) for point in frame.select("lon", "lat").iter_rows()
    ]
    assert [each["properties"]["place"] for each in features] == frame["place"].to_list()


class Killed(Exception):
    """The end of a process."""


class KilledAfter(Silence):
    """Progress that ends the process after some people."""

    def __init__(self, people: int) -> None:
        self.left = people

    def advance(self, amount: float = 1) -> None:
        self.left -= int(amount)
        if self.left < 0:
            raise Killed


def test_a_killed_job_resumes_without_a_doubled_or_missing_user(
    recommender: Recommender, tmp_path: Path
) -> None:
    people, out = everybody(recommender, k=2), tmp_path / "recs.csv"
    with pytest.raises(Killed):
        write_batch(recommender, people, out, progress=KilledAfter(3))
    assert not out.exists()
    assert write_batch(recommender, people, out)["parts_resumed"] == 1
    frame, _ = recommend_people(recommender, people)
    assert pl.read_csv(out)["user"].to_list() == frame["user"].to_list()


def test_the_parts_of_another_job_are_not_mixed_in(
    recommender: Recommender, tmp_path: Path
) -> None:
    out = tmp_path / "recs.csv"
    with pytest.raises(Killed):
        write_batch(recommender, everybody(recommender, k=2), out, progress=KilledAfter(3))
    with pytest.raises(BadInput, match="has the parts of another job"):
        write_batch(recommender, everybody(recommender, k=3), out)
    assert write_batch(recommender, everybody(recommender, k=3), out, overwrite=True)[
        "recommendations"
    ] == 3 * len(everybody(recommender))


def test_an_output_is_replaced_only_if_asked(recommender: Recommender, tmp_path: Path) -> None:
    out = tmp_path / "recs.csv"
    out.write_text("mine")
    with pytest.raises(BadInput, match="already exists"):
        write_batch(recommender, everybody(recommender), out)
    with pytest.raises(BadInput, match=r"ends in \.xlsx"):
        write_batch(recommender, everybody(recommender), tmp_path / "recs.xlsx")


def test_rejected_people_are_written_beside_the_output(
    recommender: Recommender, tmp_path: Path
) -> None:
    people = People(users=pl.Series(["nobody", *everybody(recommender).users]))
    assert write_batch(recommender, people, tmp_path / "recs.csv")["rejected"] == 1
    assert pl.read_csv(tmp_path / "recs.csv.rejected.csv")["user"].to_list() == ["nobody"]
