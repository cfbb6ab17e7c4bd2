"""Explanations: terms, attention and counterfactuals."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from castpoi.checkins.trajectory import Histories
from castpoi.model.ranker import CastPoiRanker
from castpoi.model.terms.base import Encoded
from castpoi.recommend.explain import (
    COUNTERFACTUALS,
    Explanation,
    _visits_to_leave_out,
    explain,
)
from castpoi.recommend.recommender import Recommender
from castpoi.recommend.request import Request, Visit, Visits
from castpoi.recommend.resolve import history_of
from tests.contract import odd_city
from tests.serving.small_run import DAY, OUR_PARTS, small_book, small_ranker

AT = "2012-04-04T09:00:00-04:00"
ALL = np.arange(5)
MONTHS = [
    Visit(each.place, f"2012-{1 + day // 28:02}-{1 + day % 28:02}T{str(each.at)[11:]}")
    for day, each in enumerate(DAY * 18)
][:120]
Explained = tuple[Recommender, CastPoiRanker, tuple[str, ...]]


def history(visits: list[Visit]) -> Histories:
    return history_of(Visits.of(visits), small_book())


def explanations(ranker: Any, visits: list[Visit]) -> list[Explanation]:
    """The explanations of the scores of all five places."""
    own = history(visits)
    state = ranker.encode(own)
    scores: NDArray[np.float32] = ranker.score(state)[0]
    popularity = small_book().log_popularity
    (found,) = explain(ranker, state, [own], [ALL], [scores], popularity)
    return found


@pytest.fixture(params=["the paper's", "ours"])
def explained(
    request: pytest.FixtureRequest, recommender: Recommender, near_sighted: Recommender
) -> Explained:
    """A recommender, the ranker behind it, and the terms its scores have."""
    if request.param == "ours":
        ranker = small_ranker(odd_city(), **OUR_PARTS)
        return near_sighted, ranker, ranker.model.config.terms
    ranker = small_ranker(odd_city())
    return recommender, ranker, ranker.model.config.terms


def test_an_answer_has_the_terms_of_its_model_which_sum_to_the_score(explained: Explained) -> None:
    recommender, _, names = explained
    for visits in (DAY, DAY[:1], []):
        for each in recommender.recommend(visits, explain=True):
            terms = each.to_dict()["terms"]
            assert tuple(terms) == names
            assert sum(terms.values()) == pytest.approx(each.score, abs=1e-5)


def test_the_terms_are_those_of_the_model(explained: Explained) -> None:
    recommender, ranker, names = explained
    with torch.inference_mode():
        encoded = ranker.encode(history(DAY))
        values = ranker.model.term_values(encoded, torch.arange(5))
    went = {visit.place for visit in DAY}
    for each in recommender.recommend(DAY, explain=True):
        place = small_book().number_of[each.place]
        assert each.terms is not None
        for name in names:
            expected = float(values[name][0, place])
            is_unknown = name == "revisit" and each.place not in went
            assert (expected == 0) == is_unknown
            assert each.terms[name] == pytest.approx(expected, abs=1e-5)


def test_the_weights_of_all_attended_visits_sum_to_one(recommender: Recommender) -> None:
    # the small model reads the last four visits, and up to five are shown
    for each in recommender.recommend(DAY, explain=True):
        assert each.visits is not None
        weights = [visit.weight for visit in each.visits]
        assert [visit.at.hour for visit in sorted(each.visits, key=lambda v: v.at)] == [
            12,
            13,
            19,
            22,
        ]
        assert sum(weights) == pytest.approx(1.0, abs=1e-5)
        assert weights == sorted(weights, reverse=True)


def test_a_weight_is_a_share_of_the_attention_to_all_visits() -> None:
    ranker = small_ranker(odd_city())
    with torch.inference_mode():
        encoded = ranker.encode(history(DAY))
        assert ranker.model.reader is not None
        _, attention = ranker.model.reader(encoded, torch.arange(5))  # [N, 1, H, 5, 4]
    layers, _, heads, _, slots = attention.shape
    for place, explanation in enumerate(explanations(ranker, DAY)):
        slow = [
            sum(
                float(attention[layer, 0, head, place, slot])
                for layer in range(layers)
                for head in range(heads)
            )
            for slot in range(slots)
        ]
        assert sum(slow) < layers * heads  # the rest is null attention
        for attended in explanation.visits:
            share = slow[attended.visit + slots - len(DAY)] / sum(slow)
            assert attended.weight == pytest.approx(share, abs=1e-6)


def test_the_counterfactual_is_the_score_of_the_history_without_the_visit(
    recommender: Recommender,
) -> None:
    answer = recommender.recommend(DAY, explain=True, at=AT)
    for each in answer:
        for visit in each.visits or ():
            fewer = [v for v in DAY if v.at != visit.at.isoformat()]
            assert len(fewer) == len(DAY) - 1
            (again,) = recommender.recommend(fewer, candidates=[each.place], at=AT)
            assert visit.score_without == pytest.approx(again.score, abs=1e-5)
            assert visit.score_without != pytest.approx(each.score, abs=1e-5)


def test_the_counterfactual_of_the_only_visit_is_popularity(
    recommender: Recommender,
) -> None:
    for each in recommender.recommend(DAY[:1], explain=True):
        (only,) = each.visits or ()
        (again,) = recommender.recommend([], candidates=[each.place])
        assert only.score_without == again.score
        assert only.weight == pytest.approx(1.0)


def test_a_contributing_visit_has_name_distance_and_time(recommender: Recommender) -> None:
    (each,) = recommender.recommend(DAY, explain=True, at=AT, candidates=["cafe"])
    (park,) = [visit for visit in each.visits or () if visit.place == "park"]
    assert (park.name, park.category) == ("Park", "Outdoors")
    assert park.at.isoformat() == "2012-04-03T19:00:00-04:00"
    assert park.hours_ago == 14.0
    assert park.distance_km == pytest.approx(1.5, abs=0.01)
    (each,) = recommender.recommend(DAY, explain=True, candidates=["cafe"])  # at the last visit
    hours = {visit.place: visit.hours_ago for visit in each.visits or ()}
    assert hours == {"station": 0.0, "park": 3.0, "office": 8.5, "cafe": 9.5}
    assert each.sentence.startswith("You were here 2 times, last 9 hours ago; within 450 m of")


def test_without_a_reader_the_visits_whose_loss_costs_most_are_shown(
    unread: Recommender,
) -> None:
    answer = unread.recommend(DAY, explain=True, at=AT)
    shown = [each.visits or () for each in answer]
    assert {len(visits) for visits in shown} > {5}  # some visits lower a score
    assert len({visits[0].at for visits in shown}) > 1
    for each in answer:
        falls = {}
        for left_out in DAY:
            fewer = [visit for visit in DAY if visit != left_out]
            (again,) = unread.recommend(fewer, candidates=[each.place], at=AT)
            falls[left_out.at] = each.score - again.score
        lost = {at: fall for at, fall in falls.items() if fall > 0}
        worst = sorted(lost, key=lambda at: -lost[at])[:5]
        visits = each.visits or ()
        assert [visit.at.isoformat() for visit in visits] == worst
        assert [visit.weight for visit in visits] == pytest.approx(
            [lost[at] / sum(lost.values()) for at in worst], abs=1e-4
        )
        assert [visit.score_without for visit in visits] == pytest.approx(
            [each.score - lost[at] for at in worst], abs=1e-5
        )
        assert each.terms is not None
        assert "reader" not in each.terms


def test_the_only_visit_is_shown_if_the_score_is_above_popularity(
    unread: Recommender,
) -> None:
    answer = list(unread.recommend(DAY[:1], explain=True))
    alone = {each.place: each.score for each in unread.recommend([])}
    assert {each.score > alone[each.place] for each in answer} == {True, False}
    for each in answer:
        named = [(visit.weight, visit.score_without) for visit in each.visits or ()]
        wanted = [(1.0, alone[each.place])] if each.score > alone[each.place] else []
        assert named == wanted


def test_explanations_of_a_batch_equal_those_of_single_requests(unread: Recommender) -> None:
    requests = [
        Request.of(history=DAY, explain=True, new_only=True, k=1),
        Request.of(history=[], explain=True),
        Request.of(history=DAY[:3], explain=True, candidates=["cafe", "park"]),
    ]
    for request, together in zip(requests, unread.recommend_many(requests), strict=True):
        (alone,) = unread.recommend_many([request])
        for one, other in zip(alone, together, strict=True):
            assert [visit.at for visit in one.visits or ()] == [
                visit.at for visit in other.visits or ()
            ]
            assert [visit.weight for visit in one.visits or ()] == pytest.approx(
                [visit.weight for visit in other.visits or ()], abs=1e-4
            )


def test_counterfactuals_are_the_last_visits_and_the_latest_to_each_candidate_in_turn() -> None:
    few = np.array([3, 1, 2, 1])
    assert _visits_to_leave_out(few, np.array([1, 4])).tolist() == [0, 1, 2, 3]
    visited = np.full(60, 9)
    visited[5] = visited[20] = visited[30] = 1  # visit 5 is not among the last fifty
    visited[25] = 2
    kept = _visits_to_leave_out(visited, np.array([1, 2])).tolist()
    # the last two, the latest to each candidate, the one before, and the latest others
    assert kept == [20, 25, 30, *range(51, 60)]
    assert len(kept) == COUNTERFACTUALS


def test_a_long_history_has_counterfactuals_of_recent_visits_in_one_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ranker, batches = small_ranker(odd_city(), candidate_conditioning=False), list[int]()
    encode = ranker.encode

    def counted(histories: Histories) -> Encoded:
        batches.append(len(histories))
        return encode(histories)

    monkeypatch.setattr(ranker, "encode", counted)
    monkeypatch.setattr("castpoi.recommend.explain.VISITS_SHOWN", 100)
    found = explanations(ranker, MONTHS)
    assert batches == [1, COUNTERFACTUALS]  # the history itself, and once for all five places
    assert all(visit.visit >= 70 for each in found for visit in each.visits)


class _Sum:
    """A ranker whose score of each place is the number of visits after `hour` to it."""

    def __init__(self, worth: list[float]) -> None:
        self.worth = np.array(worth, dtype=np.float32)

    def encode(self, histories: Histories) -> NDArray[np.float32]:
        hours = histories.at_us // 3_600_000_000
        own = np.zeros(len(histories), dtype=np.float32)
        np.add.at(own, histories.owner, self.worth[hours])
        return own

    def score(
        self, encoded: NDArray[np.float32], candidates: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        count = 5 if candidates is None else len(candidates)
        return np.repeat(encoded[:, None], count, axis=1)


def missed(worth: list[float]) -> list[tuple[int, float]]:
    """Visits and weights where each visit adds its worth to every score."""
    own = Histories(
        place=np.zeros(len(worth), dtype=np.int64),
        at_us=np.arange(len(worth)) * 3_600_000_000,
        offset_minutes=np.zeros(len(worth), dtype=np.int64),
        bounds=np.array([0, len(worth)]),
    )
    ranker: Any = _Sum(worth)
    state = ranker.encode(own)
    (found,) = explain(
        ranker, state, [own], [ALL], [ranker.score(state)[0]], small_book().log_popularity
    )
    return [(visit.visit, visit.weight) for visit in found[0].visits]


def test_a_visit_has_its_share_of_the_loss_without_each_visit() -> None:
    visits, weights = zip(*missed([0.5, -1.0, 1.5, 1.0]), strict=True)
    assert visits == (2, 3, 0)
    assert weights == pytest.approx((1 / 2, 1 / 3, 1 / 6))


def test_of_equal_losses_the_later_visit_comes_first() -> None:
    assert missed([1.0, 1.0]) == [(1, 0.5), (0, 0.5)]


def test_float_rounding_is_not_a_loss() -> None:
    assert missed([0.0, 1e-5]) == []


def test_an_answer_has_the_meaning_of_the_weights(
    recommender: Recommender, unread: Recommender
) -> None:
    for each, word in ((recommender, "attention"), (unread, "counterfactual")):
        assert each.weighed_by == word
        assert each.recommend(DAY, explain=True).to_dict()["visits_by"] == word
        assert each.recommend(DAY).visits_by is None
