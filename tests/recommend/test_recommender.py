import json
import shutil
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
import polars as pl
import pytest
import torch

import castpoi
from castpoi.checkins import record
from castpoi.checkins.trajectory import Histories
from castpoi.core.errors import BadScores, BrokenFolder, CastPoiError, NoCandidateLeft, UnknownUser
from castpoi.methods.registry import METHODS
from castpoi.model import ranker as castpoi_ranker
from castpoi.model.ranker import CastPoiRanker
from castpoi.recommend.recommendation import Recommendations
from castpoi.recommend.recommender import Recommender, load
from castpoi.recommend.request import Request, Visit
from castpoi.recommend.resolve import ResolvedRequest
from castpoi.training.train import train
from tests.contract import odd_city
from tests.manifests import accept_changes
from tests.messages import refused
from tests.serving.small_run import DAY, small_ranker

COUNTED = [method.name for method in METHODS if not method.needs_training]


def places(answer: Recommendations) -> list[str]:
    return [each.place for each in answer]


def test_the_best_places_come_first_with_probabilities_over_all_places(
    recommender: Recommender,
) -> None:
    answer = recommender.recommend(DAY)
    scores = [each.score for each in answer]
    assert len(answer) == 5
    assert scores == sorted(scores, reverse=True)
    assert sum(each.probability for each in answer) == pytest.approx(1.0)
    assert {each.place for each in answer if each.visited} == {visit.place for visit in DAY}


def test_filters_change_neither_scores_nor_probabilities(recommender: Recommender) -> None:
    everywhere = {each.place: each for each in recommender.recommend(DAY)}
    for each in recommender.recommend(DAY, categories=["Food", "Arts"], k=2):
        assert each.score == pytest.approx(everywhere[each.place].score, abs=1e-6)
        assert each.probability == pytest.approx(everywhere[each.place].probability, rel=1e-5)


def test_candidates_have_their_rank_among_all_places(recommender: Recommender) -> None:
    listed = recommender.recommend(DAY)
    assert [each.rank for each in listed] == [1, 2, 3, 4, 5]
    some = [listed.recommendations[index].place for index in (3, 1)]
    assert [each.rank for each in recommender.recommend(DAY, candidates=some)] == [2, 4]
    first = listed.recommendations[0].place
    rest = recommender.recommend(DAY, candidates=some, exclude=[first])
    assert [each.rank for each in rest] == [1, 3]


def test_with_a_shortlist_candidates_have_no_rank(recommender: Recommender) -> None:
    assert recommender.weighed_by == "attention"
    short = Recommender(recommender.run, recommender.places, shortlist=2)
    assert [each.rank for each in short.recommend(DAY, k=2)] == [1, 2]
    assert [each.rank for each in short.recommend(DAY, k=1, candidates=["cafe"])] == [None]


def test_the_ranking_equals_that_of_evaluation(recommender: Recommender) -> None:
    city, ranker = odd_city(), small_ranker(odd_city())
    targets = city.targets(record.TEST)
    scores = ranker.score(ranker.encode(city.trajectories.histories_before(targets)))
    for row, expected in zip(targets, scores, strict=True):
        user = int(city.trajectories.user[row])
        just_before = int(city.trajectories.at_us[row]) - 1
        if not (city.trajectories.user[:row] == user).any():
            continue  # an empty history is answered with popularity
        at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=just_before)
        answer = recommender.recommend(user=f"user {user}", at=at)
        order = np.argsort(-expected, kind="stable")
        assert places(answer) == [city.places[record.PLACE_ID][int(place)] for place in order]
        np.testing.assert_allclose([each.score for each in answer], expected[order], atol=1e-5)


def test_a_user_has_the_answer_of_their_visits(recommender: Recommender) -> None:
    own = [
        Visit("park", "2012-04-02T15:00:00Z"),
        Visit("station", "2012-04-03T15:00:00Z"),
    ]
    assert recommender.recommend(user="user 2") == recommender.recommend(own)


def test_the_error_for_an_unknown_user_does_not_repeat_the_id(recommender: Recommender) -> None:
    with refused(UnknownUser) as error:
        recommender.recommend(user="Mallory")
    assert "Mallory" not in str(error.value)


def test_a_recommender_without_users_needs_a_history(recommender: Recommender) -> None:
    alone = Recommender(recommender.run, recommender.places)
    with refused(UnknownUser):
        alone.recommend(user="user 0")


def test_unknown_places_are_skipped_with_a_remark(recommender: Recommender) -> None:
    odd = [*DAY, Visit("moon", "2012-04-03T23:00:00-04:00")]
    answer = recommender.recommend(odd, candidates=["cafe", "mars", "venus"])
    assert answer.remarks == (
        "1 visit was skipped: not at a place of the run",
        "2 candidates were skipped: not among the places of the run",
    )
    assert answer.recommendations == recommender.recommend(DAY, candidates=["cafe"]).recommendations


def test_an_empty_history_has_the_most_visited_places(recommender: Recommender) -> None:
    answer = recommender.recommend([], explain=True)
    # 3, 2, 2, 1 and 0 check-ins in the train part; the tie by place number
    assert places(answer) == ["cafe", "office", "park", "station", "theatre"]
    assert [round(13 * each.probability) for each in answer] == [4, 3, 3, 2, 1]
    assert answer.remarks == ("the history is empty, so these are the most visited places",)
    for each in answer:
        assert each.terms is not None
        assert (sum(each.terms.values()), each.visits, each.distance_km) == (each.score, (), None)


def test_an_empty_history_with_a_position_has_popular_places_nearby(
    recommender: Recommender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("castpoi.recommend.resolve.NEARBY", 2)
    answer = recommender.recommend([], near=(40.80, -74.0), k=2)
    assert places(answer) == ["station", "theatre"]
    assert answer.recommendations[1].distance_km == pytest.approx(0.88, abs=0.01)


def test_distances_are_from_near_or_else_from_the_last_visit(recommender: Recommender) -> None:
    (from_station,) = recommender.recommend(DAY, candidates=["cafe"])
    (from_here,) = recommender.recommend(DAY, candidates=["cafe"], near=(40.70, -74.0))
    assert from_station.distance_km == pytest.approx(4.0, abs=0.01)
    assert from_here.distance_km == 0.0
    assert from_here.sentence.endswith("; 50 m from you")


def test_many_requests_are_answered_as_each_would_be_alone(recommender: Recommender) -> None:
    requests = [
        Request.of(history=DAY, explain=True),
        Request.of(history=(), k=2),
        Request.of(history=DAY[:2], categories=("Food", "Arts")),
        Request.of(user="user 0", k=3, explain=True, new_only=True),
        Request.of(history=DAY[:5], k=1, near=(40.7, -74.0)),
        Request.of(history=(), k=2, explain=True),
    ]
    for request, together in zip(requests, recommender.recommend_many(requests), strict=True):
        (alone,) = recommender.recommend_many([request])
        assert together.remarks == alone.remarks
        assert len(together) == len(alone)
        for one, other in zip(together, alone, strict=True):
            check_same(one.to_dict(), other.to_dict())


def test_a_large_batch_is_answered_in_blocks_of_bounded_memory(
    recommender: Recommender, monkeypatch: pytest.MonkeyPatch
) -> None:
    encode, sizes = recommender.ranker.encode, list[int]()

    def counted(histories: Histories) -> object:
        sizes.append(len(histories))
        return encode(histories)

    requests = [Request.of(history=DAY[:count], k=2) for count in (1, 0, 7, 2, 3, 0, 4)]
    alone = [recommender.recommend_many([request])[0] for request in requests]
    monkeypatch.setattr(recommender.ranker, "encode", counted)
    monkeypatch.setattr("castpoi.recommend.recommender.MAX_SCORES", 10)  # of five places
    found = recommender.answer([each for each in recommender.resolve(requests) if is_valid(each)])
    assert sizes == [2, 2, 1]
    assert [places(each) for each in found] == [places(each) for each in alone]


def is_valid(resolved: ResolvedRequest | CastPoiError) -> TypeGuard[ResolvedRequest]:
    return isinstance(resolved, ResolvedRequest)


def check_same(one: object, other: object) -> None:
    """The same words and, to 1e-5, the same numbers."""
    if isinstance(one, dict) and isinstance(other, dict):
        assert one.keys() == other.keys()
        for key in one:
            check_same(one[key], other[key])
    elif isinstance(one, list) and isinstance(other, list):
        assert len(one) == len(other)
        for left, right in zip(one, other, strict=True):
            check_same(left, right)
    elif isinstance(one, float) and not isinstance(one, bool):
        assert one == pytest.approx(other, abs=1e-5)
    else:
        assert one == other


def test_a_bad_request_does_not_affect_the_others(recommender: Recommender) -> None:
    requests = [Request.of(history=DAY, candidates=[place]) for place in ("moon", "cafe")]
    bad, good = recommender.resolve(requests)
    assert isinstance(bad, NoCandidateLeft)
    assert isinstance(good, ResolvedRequest)
    assert places(recommender.answer([good])[0]) == ["cafe"]
    with refused(NoCandidateLeft):
        recommender.recommend_many(requests)


def test_an_answer_has_the_fields_of_the_api(recommender: Recommender) -> None:
    answer = json.loads(json.dumps(recommender.recommend(DAY, explain=True).to_dict()))
    assert list(answer) == [
        *("recommendations", "model", "seconds", "remarks", "visits_by", "user_known")
    ]
    first = answer["recommendations"][0]
    assert list(first) == [
        *("place", "name", "category", "lat", "lon", "rank", "score"),
        *("probability", "distance_km", "visited", "sentence", "terms", "visits"),
    ]
    assert list(first["terms"]) == ["base", "popularity", "reader", "revisit"]
    needed = {
        "place",
        "name",
        "category",
        "at",
        "hours_ago",
        "weight",
        "distance_km",
        "score_without",
    }
    assert first["visits"][0].keys() == needed
    assert answer["model"] == recommender.model
    assert answer["model"].startswith("castpoi ")


@pytest.mark.parametrize("method", COUNTED)
def test_every_counting_baseline_has_counterfactuals_but_no_terms(
    tmp_path: Path, method: str
) -> None:
    odd_city().save(tmp_path / "city")
    train(tmp_path / "city", tmp_path / "run", method=method)
    loaded = castpoi.load(tmp_path / "run")
    answer = loaded.recommend(DAY, k=3, explain=True)
    assert [each.terms for each in answer] == [None] * 3
    for each in answer:
        for visit in each.visits or ():
            fewer = [one for one in DAY if one.at != visit.at.isoformat()]
            (again,) = loaded.recommend(fewer, candidates=[each.place])
            assert visit.score_without == pytest.approx(again.score, abs=1e-6)
    if method != "popularity":  # which does not depend on visits
        assert any(each.visits for each in answer)
    assert answer.remarks == (
        f"the scores of {method} have no terms, so only visits are shown",
        f"{method} is a counting baseline: its probabilities rank places, but they are not "
        "calibrated",
    )
    assert all(0 <= each.probability <= 1 and each.sentence for each in answer)


def test_a_run_recommends_without_its_city(run_folder: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alone"
    shutil.copytree(run_folder, alone)
    accept_changes(alone, city="/nowhere")
    recommender = castpoi.load(alone)
    assert len(recommender.recommend(DAY)) == 5
    with refused(BrokenFolder):
        recommender.recommend(user="user 0")
    found = castpoi.load(alone, city=run_folder.parent / "city").recommend(user="user 0")
    assert len(found) == 5


def test_a_large_vocabulary_is_scored_by_a_shortlist(
    run_folder: Path, recommender: Recommender
) -> None:
    short = castpoi.load(run_folder, shortlist=4)
    assert (short.shortlist, recommender.shortlist) == (4, None)
    answers = (each.recommend(DAY, k=5, explain=True) for each in (short, recommender))
    for one, other in zip(*answers, strict=True):
        check_same(one.to_dict(), other.to_dict())


def test_importing_castpoi_imports_nothing_heavy_until_a_run_is_loaded() -> None:
    code = "import castpoi, sys; print(*sys.modules); castpoi.load"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"torch", "polars", "numpy", "click"} & set(ended.stdout.split())
    assert castpoi.load is load
    with pytest.raises(AttributeError, match="module 'castpoi' has no attribute 'lode'"):
        _ = castpoi.lode  # type: ignore[attr-defined]


def test_a_counted_run_recommends_without_torch(tmp_path: Path) -> None:
    odd_city().save(tmp_path / "city")
    train(tmp_path / "city", tmp_path / "run", method="revisit")
    code = (
        "import castpoi, sys; "
        f"castpoi.load({str(tmp_path / 'run')!r}).recommend(user='user 0'); "
        "print('torch' in sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "False"


def test_with_an_index_the_answers_are_those_of_scoring_every_place(
    unread: Recommender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(castpoi_ranker, "INDEX_FROM", 0)
    indexed = Recommender(unread.run, unread.places)
    assert indexed.finder is not None
    wanted: list[dict[str, Any]] = [{}, {"new_only": True}, {"within_km": 5.0, "k": 2}]
    for options in [*wanted, {"max_per_category": 1}, {"explain": True, "exclude": ["cafe"]}]:
        answer, expected = (each.recommend(DAY, **options) for each in (indexed, unread))
        assert places(answer) == places(expected)
        for mine, theirs in zip(answer, expected, strict=True):
            assert mine.score == pytest.approx(theirs.score, abs=1e-5)
            assert mine.probability == pytest.approx(theirs.probability, rel=1e-4)
    histories = pl.DataFrame(
        {"user": "a", "place": [each.place for each in DAY], "time": [each.at for each in DAY]}
    )
    table = indexed.recommend_all(histories=histories, k=3)
    assert table["place"].to_list() == places(unread.recommend(DAY, k=3))


def test_scores_that_are_not_finite_are_refused_with_an_index_too(
    unread: Recommender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(castpoi_ranker, "INDEX_FROM", 0)
    ranker = CastPoiRanker.restore(unread.ranker.config, unread.ranker.arrays)
    with torch.no_grad():
        ranker.model.popularity.fill_(torch.nan)
    spoiled = Recommender(replace(unread.run, ranker=ranker), unread.places)
    with refused(BadScores):
        spoiled.recommend(DAY)
