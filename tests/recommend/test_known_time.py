"""A run with known time predicts for the time of the request, by default now."""

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from castpoi.checkins import record
from castpoi.recommend.recommendation import Recommendations
from castpoi.recommend.recommender import Recommender, load
from castpoi.recommend.request import Visit, instant_us
from tests.contract import odd_city
from tests.serving.small_run import DAY, small_ranker, small_run

PARTS = {"revisit_features": "habits", "deep_revisits": True, "known_time": True}
EVENING = "2012-04-04T20:00:00-04:00"
SUNDAY = "2012-04-08T09:00:00-04:00"


@pytest.fixture(scope="module")
def timed_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_run(tmp_path_factory.mktemp("timed"), **PARTS)


@pytest.fixture(scope="module")
def timed(timed_run: Path) -> Recommender:
    return load(timed_run)


def scores(answer: Recommendations) -> dict[str, float]:
    return {each.place: each.score for each in answer}


def set_clock(monkeypatch: pytest.MonkeyPatch, recommender: Recommender, moment: str) -> None:
    now_us = instant_us(moment, what="now")
    monkeypatch.setattr(recommender, "clock", lambda: now_us)


def test_the_time_of_the_request_changes_scores_only_with_known_time(
    timed: Recommender, recommender: Recommender
) -> None:
    assert timed.needs_next_time
    assert not recommender.needs_next_time
    for each in (timed, recommender):
        evening, sunday = (scores(each.recommend(DAY, at=at)) for at in (EVENING, SUNDAY))
        assert (evening != sunday) == each.needs_next_time


def test_the_time_of_the_request_is_now_by_default(
    timed: Recommender, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_clock(monkeypatch, timed, EVENING)
    now = timed.recommend(DAY)
    assert scores(now) == scores(timed.recommend(DAY, at=EVENING))
    assert "last 22 hours ago" in next(each for each in now if each.place == "station").sentence


def test_a_visit_less_than_a_day_ahead_is_used(
    timed: Recommender, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_clock(monkeypatch, timed, "2012-04-03T12:45:00-04:00")
    now = timed.recommend(DAY)
    assert now.remarks == ()
    assert scores(now) == scores(timed.recommend(DAY, at=str(DAY[-1].at)))
    assert timed.recommend(DAY, at="2012-04-03T12:45:00-04:00").remarks == (
        "3 visits were left out: later than the time of the request",
    )


def test_other_models_predict_for_the_last_visit_whatever_the_clock(
    recommender: Recommender, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_clock(monkeypatch, recommender, "2012-04-03T12:45:00-04:00")
    assert recommender.recommend(DAY).remarks == ()


@pytest.mark.parametrize("known_time", [True, False])
def test_future_visits_are_left_out_unless_a_time_is_given(
    timed: Recommender,
    recommender: Recommender,
    monkeypatch: pytest.MonkeyPatch,
    known_time: bool,
) -> None:
    predicting = timed if known_time else recommender
    set_clock(monkeypatch, predicting, EVENING)
    future = Visit("theatre", "2012-04-05T20:00:01-04:00")  # a day and a second later
    answer = predicting.recommend([*DAY, future])
    assert answer.remarks == ("1 visit was left out: more than a day later than now",)
    assert scores(answer) == scores(predicting.recommend(DAY))
    assert not any(each.place == "theatre" and each.visited for each in answer)
    assert predicting.recommend([*DAY, future], at="2012-04-06T20:00:00-04:00").remarks == ()


def test_scores_with_known_time_equal_those_of_evaluation(timed: Recommender) -> None:
    city, ranker = odd_city(), small_ranker(odd_city(), **PARTS)
    rows = city.targets(record.TEST)[:3]
    histories = city.trajectories.histories_before(rows, known_time=True)
    expected = ranker.score(ranker.encode(histories))
    ids = city.places[record.PLACE_ID].to_list()
    for row, scored in zip(rows, expected, strict=True):
        own = city.trajectories.histories_before(np.array([row]))
        moments = [datetime.fromtimestamp(us / 1e6, UTC) for us in own.at_us]
        visits = [(ids[place], at) for place, at in zip(own.place, moments, strict=True)]
        at = datetime.fromtimestamp(city.trajectories.at_us[row] / 1e6, UTC)
        found = scores(timed.recommend(visits, at=at))
        assert [found[each] for each in ids] == pytest.approx(scored.tolist(), abs=1e-5)


def test_counterfactuals_are_for_the_same_time(timed: Recommender) -> None:
    answer = timed.recommend(DAY, at=EVENING, explain=True)
    for each in answer:
        assert each.terms is not None
        assert each.visits
        assert sum(each.terms.values()) == pytest.approx(each.score, abs=1e-5)
        for visit in each.visits:
            fewer = [one for one in DAY if datetime.fromisoformat(str(one.at)) != visit.at]
            without = scores(timed.recommend(fewer, at=EVENING))
            assert visit.score_without == pytest.approx(without[each.place], abs=1e-5)
