from pathlib import Path

import numpy as np
import pytest
import torch

from castpoi.checkins.trajectory import Histories
from castpoi.model.castpoi import Encoded
from castpoi.model.config import PAPER_TERMS
from castpoi.model.ranker import CastPoiRanker
from castpoi.recommend.history import end_to_end, history_of
from castpoi.recommend.reasons import Reasoner
from castpoi.recommend.recommender import Recommender, load
from castpoi.recommend.request import Request, Visit
from tests.contract import odd_city
from tests.serving.small_run import DAY, OUR_PARTS, small_book, small_ranker, small_run

ASKED = "2012-04-04T09:00:00-04:00"
ALL = np.arange(5)
MONTHS = [
    Visit(each.place, f"2012-{1 + day // 28:02}-{1 + day % 28:02}T{str(each.at)[11:]}")
    for day, each in enumerate(DAY * 18)
][:120]
Explained = tuple[Recommender, CastPoiRanker, tuple[str, ...]]


@pytest.fixture(params=["the paper's", "ours"])
def explained(
    request: pytest.FixtureRequest, recommender: Recommender, near_sighted: Recommender
) -> Explained:
    """A recommender, the ranker behind it, and the terms its scores have."""
    if request.param == "ours":
        ranker = small_ranker(odd_city(), **OUR_PARTS)
        return near_sighted, ranker, (*PAPER_TERMS, "distance")
    return recommender, small_ranker(odd_city()), PAPER_TERMS


def test_the_terms_sum_to_the_score(explained: Explained) -> None:
    for history in (DAY, DAY[:1], []):
        for each in explained[0].recommend(history, explain=True):
            assert each.terms is not None
            assert each.terms.total == pytest.approx(each.score, abs=1e-5)
            assert sum(each.to_dict()["terms"].values()) == each.terms.total


def test_the_four_terms_of_the_paper_are_always_told_and_others_if_the_model_has_them(
    explained: Explained,
) -> None:
    recommender, _, names = explained
    for history in (DAY, []):
        for each in recommender.recommend(history, explain=True):
            assert tuple(each.to_dict()["terms"]) == names


def test_the_terms_are_those_of_the_model(explained: Explained) -> None:
    recommender, ranker, names = explained
    history, _ = history_of(DAY, small_book())
    with torch.inference_mode():
        encoded = ranker.encode(end_to_end([history]))
        model = ranker.model.terms(encoded, torch.arange(1, 6))
    went = {visit.place for visit in DAY}
    for each in recommender.recommend(DAY, explain=True):
        place = small_book().number_of[each.place]
        assert each.terms is not None
        for name in names:
            expected = float(getattr(model, name)[0, place])
            is_unknown = name == "revisit" and each.place not in went
            assert (expected == 0) == is_unknown
            assert getattr(each.terms, name) == pytest.approx(expected, abs=1e-5)


def test_the_sum_of_a_shortlisted_score_is_told_by_the_same_terms(
    tmp_path: Path, near_sighted: Recommender
) -> None:
    short = load(small_run(tmp_path, **OUR_PARTS), exact_up_to=0)
    exact = {each.place: each for each in near_sighted.recommend(DAY, explain=True)}
    for each in short.recommend(DAY, explain=True):
        assert each.terms is not None
        assert each.terms.total == pytest.approx(exact[each.place].score, abs=1e-5)


def test_the_weights_of_all_visits_that_are_read_sum_to_one(recommender: Recommender) -> None:
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


def test_a_weight_is_a_visits_share_of_the_attention_given_to_visits() -> None:
    ranker, (history, _) = small_ranker(odd_city()), history_of(DAY, small_book())
    (reasons,) = Reasoner(ranker, small_book()).reasons(
        [history], [ALL], [np.zeros(5, dtype=np.float32)]
    )
    with torch.inference_mode():
        encoded = ranker.encode(end_to_end([history]))
        attention = ranker.model.terms(encoded, torch.arange(1, 6)).attention  # [N, 1, H, 5, 4]
    layers, _, heads, _, slots = attention.shape
    for place, reason in enumerate(reasons):
        slow = [
            sum(
                float(attention[layer, 0, head, place, slot])
                for layer in range(layers)
                for head in range(heads)
            )
            for slot in range(slots)
        ]
        assert sum(slow) < layers * heads  # the candidate looked away, too
        for attended in reason.visits:
            share = slow[attended.visit + slots - len(DAY)] / sum(slow)
            assert attended.weight == pytest.approx(share, abs=1e-6)


def test_the_counterfactual_is_the_score_of_the_history_without_the_visit(
    recommender: Recommender,
) -> None:
    told = recommender.recommend(DAY, explain=True, at=ASKED)
    for each in told:
        for visit in each.visits or ():
            fewer = [v for v in DAY if v.at != visit.at.isoformat()]
            assert len(fewer) == len(DAY) - 1
            (again,) = recommender.recommend(fewer, candidates=[each.place], at=ASKED)
            assert visit.score_without == pytest.approx(again.score, abs=1e-5)
            assert visit.score_without != pytest.approx(each.score, abs=1e-5)


def test_without_its_only_visit_a_history_leaves_the_popularity_of_the_place(
    recommender: Recommender,
) -> None:
    for each in recommender.recommend(DAY[:1], explain=True):
        (only,) = each.visits or ()
        (again,) = recommender.recommend([], candidates=[each.place])
        assert only.score_without == again.score
        assert only.weight == pytest.approx(1.0)


def test_a_visit_is_told_with_name_distance_and_time(recommender: Recommender) -> None:
    (each,) = recommender.recommend(DAY, explain=True, at=ASKED, candidates=["cafe"])
    (park,) = [visit for visit in each.visits or () if visit.place == "park"]
    assert (park.name, park.category) == ("Park", "Outdoors")
    assert park.at.isoformat() == "2012-04-03T19:00:00-04:00"
    assert park.hours_ago == 14.0
    assert park.distance_km == pytest.approx(1.5, abs=0.01)


def test_time_ago_is_counted_from_the_last_visit_unless_told(recommender: Recommender) -> None:
    (each,) = recommender.recommend(DAY, explain=True, candidates=["cafe"])
    hours = {visit.place: visit.hours_ago for visit in each.visits or ()}
    assert hours == {"station": 0.0, "park": 3.0, "office": 8.5, "cafe": 9.5}
    assert each.sentence.startswith("You were here 2 times, last 9 hours ago; within 450 m of")


def test_a_model_without_a_reader_names_the_visits_without_which_the_score_falls_most(
    unread: Recommender,
) -> None:
    for each in unread.recommend(DAY, explain=True, at=ASKED):
        falls = {}
        for left_out in DAY:
            fewer = [visit for visit in DAY if visit != left_out]
            (again,) = unread.recommend(fewer, candidates=[each.place], at=ASKED)
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
        assert each.terms.reader == 0.0


def test_some_visits_speak_for_a_place_and_some_against_it(unread: Recommender) -> None:
    # else the tests of missed visits would show little
    named = [each.visits or () for each in unread.recommend(DAY, explain=True)]
    assert all(0 < len(visits) <= 5 for visits in named)
    assert any(len(visits) < 5 for visits in named)
    assert len({visits[0].at for visits in named}) > 1


def test_an_only_visit_is_named_where_the_score_is_above_the_popularity_of_the_place(
    unread: Recommender,
) -> None:
    told = list(unread.recommend(DAY[:1], explain=True))
    alone = {each.place: each.score for each in unread.recommend([])}
    assert {each.score > alone[each.place] for each in told} == {True, False}
    for each in told:
        named = [(visit.weight, visit.score_without) for visit in each.visits or ()]
        wanted = [(1.0, alone[each.place])] if each.score > alone[each.place] else []
        assert named == wanted


def test_without_a_history_there_is_no_visit_to_miss(unread: Recommender) -> None:
    assert [each.visits for each in unread.recommend([], explain=True)] == [()] * 5


def test_many_at_a_time_miss_the_same_visits_as_each_alone(unread: Recommender) -> None:
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


def test_of_a_long_history_the_last_fifty_visits_are_left_out_by_turns() -> None:
    ranker = small_ranker(odd_city(), candidate_conditioning=False)
    (history, _), read = history_of(MONTHS, small_book()), []
    encode = ranker.encode

    def counted(histories: Histories) -> Encoded:
        read.append(len(histories))
        return encode(histories)

    ranker.encode = counted  # type: ignore[method-assign]
    score = ranker.score(encode(end_to_end([history])), ALL)[0]
    (reasons,) = Reasoner(ranker, small_book(), shown=100).reasons([history], [ALL], [score])
    assert read == [1, 50]  # the history itself, and once for all five places
    assert all(visit.visit >= 70 for reason in reasons for visit in reason.visits)


def test_an_answer_tells_what_the_weight_of_a_visit_is(
    recommender: Recommender, unread: Recommender
) -> None:
    for each, word in ((recommender, "attention"), (unread, "counterfactual")):
        assert each.visits_by == word
        assert each.recommend(DAY, explain=True).to_dict()["visits_by"] == word
        assert each.recommend(DAY).visits_by is None


def test_many_visits_are_left_out_in_several_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    reasoner = Reasoner(small_ranker(odd_city()), small_book())
    lots = [history_of(DAY[:count], small_book())[0] for count in (7, 2, 5)]
    chosen = [ALL, ALL[1:3], ALL[:1]]
    scores = [np.zeros(len(places), dtype=np.float32) for places in chosen]
    at_once = reasoner.reasons(lots, chosen, scores)
    monkeypatch.setattr("castpoi.recommend.reasons._AT_ONCE", 3)
    in_parts = reasoner.reasons(lots, chosen, scores)
    for one, other in zip(at_once, in_parts, strict=True):
        for left, right in zip(one, other, strict=True):
            assert [v.visit for v in left.visits] == [v.visit for v in right.visits]
            np.testing.assert_allclose(
                [v.score_without for v in left.visits],
                [v.score_without for v in right.visits],
                atol=1e-5,
            )
