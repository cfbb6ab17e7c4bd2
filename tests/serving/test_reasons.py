from pathlib import Path

import numpy as np
import pytest
import torch

from castpoi.model.config import PAPER_TERMS
from castpoi.model.ranker import CastPoiRanker
from castpoi.serving.history import end_to_end, history_of
from castpoi.serving.reasons import Reasoner
from castpoi.serving.recommender import Recommender, load
from tests.contract import odd_city
from tests.serving.small_run import DAY, OUR_PARTS, small_book, small_ranker, small_run

ASKED = "2012-04-04T09:00:00-04:00"
ALL = np.arange(5)
Explained = tuple[Recommender, CastPoiRanker, tuple[str, ...]]


@pytest.fixture(params=["the paper's", "ours"])
def explained(
    request: pytest.FixtureRequest, recommender: Recommender, near_sighted: Recommender
) -> Explained:
    """A recommender, the ranker behind it, and the terms its scores have."""
    if request.param == "ours":
        return near_sighted, small_ranker(odd_city(), **OUR_PARTS), (*PAPER_TERMS, "distance")
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
    for each in recommender.recommend(DAY, explain=True):
        place = small_book().number_of[each.place]
        assert each.terms is not None
        for name in names:
            expected = float(getattr(model, name)[0, place])
            assert expected != 0 or name == "revisit"
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


def test_a_weight_is_the_mean_of_the_readers_attention_over_heads_and_layers() -> None:
    ranker, (history, _) = small_ranker(odd_city()), history_of(DAY, small_book())
    (reasons,) = Reasoner(ranker, small_book()).reasons(
        [history], [ALL], [np.zeros(5, dtype=np.float32)]
    )
    with torch.inference_mode():
        encoded = ranker.encode(end_to_end([history]))
        attention = ranker.model.terms(encoded, torch.arange(1, 6)).attention  # [N, 1, H, 5, 4]
    for place, reason in enumerate(reasons):
        for attended in reason.visits:
            slow = np.mean(
                [
                    float(attention[layer, 0, head, place, attended.visit - 3])
                    for layer in range(attention.shape[0])
                    for head in range(attention.shape[2])
                ]
            )
            assert attended.weight == pytest.approx(slow, abs=1e-6)


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


def test_a_model_without_a_reader_has_terms_but_looks_at_no_visit(tmp_path: Path) -> None:
    blind = load(small_run(tmp_path, candidate_conditioning=False))
    for each in blind.recommend(DAY, explain=True):
        assert each.terms is not None
        assert (each.terms.reader, each.visits) == (0.0, ())


def test_many_visits_are_left_out_in_several_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    reasoner = Reasoner(small_ranker(odd_city()), small_book())
    lots = [history_of(DAY[:count], small_book())[0] for count in (7, 2, 5)]
    chosen = [ALL, ALL[1:3], ALL[:1]]
    scores = [np.zeros(len(places), dtype=np.float32) for places in chosen]
    at_once = reasoner.reasons(lots, chosen, scores)
    monkeypatch.setattr("castpoi.serving.reasons._AT_ONCE", 3)
    in_parts = reasoner.reasons(lots, chosen, scores)
    for one, other in zip(at_once, in_parts, strict=True):
        for left, right in zip(one, other, strict=True):
            assert [v.visit for v in left.visits] == [v.visit for v in right.visits]
            np.testing.assert_allclose(
                [v.score_without for v in left.visits],
                [v.score_without for v in right.visits],
                atol=1e-5,
            )
