import math

import numpy as np
import pytest

from castpoi.recommend.history import History, end_to_end, history_of
from castpoi.recommend.scores import PlaceScorer
from castpoi.recommend.shortlist import ShortlistScorer
from tests.contract import odd_city
from tests.serving.small_run import DAY, small_book, small_ranker

ALL = np.ones(5, dtype=np.bool_)


def histories() -> list[History]:
    return [history_of(DAY[:count], small_book())[0] for count in (7, 3, 0, 5)]


def scorers(size: int) -> tuple[PlaceScorer, ShortlistScorer]:
    ranker, book = small_ranker(odd_city()), small_book()
    return PlaceScorer(ranker, book), ShortlistScorer(ranker, book, size=size)


def test_a_shortlist_of_all_places_is_exact() -> None:
    exact, short = (each.score(histories(), [ALL] * 4, [5] * 4) for each in scorers(5))
    np.testing.assert_allclose(short.score, exact.score, atol=1e-5)
    np.testing.assert_array_equal(short.is_eligible, exact.is_eligible)
    np.testing.assert_allclose(short.log_total, exact.log_total, atol=1e-5)


def test_what_is_on_the_shortlist_is_scored_exactly() -> None:
    exact, short = (each.score(histories(), [ALL] * 4, [2] * 4) for each in scorers(2))
    assert short.is_eligible.sum(axis=1).tolist() == [2, 2, 5, 2]  # an empty history needs none
    listed = short.is_eligible
    np.testing.assert_allclose(short.score[listed], exact.score[listed], atol=1e-5)


def test_only_allowed_places_are_on_the_shortlist() -> None:
    allowed = np.array([False, False, True, True, False])
    short = scorers(2)[1].score(histories()[:1], [allowed], [1])
    np.testing.assert_array_equal(short.is_eligible[0], allowed)


def test_no_fewer_than_asked_for_are_on_the_shortlist_whoever_else_asks() -> None:
    short = scorers(2)[1]
    together = short.score(histories(), [ALL] * 4, [2, 4, 2, 2])
    assert together.is_eligible.sum(axis=1).tolist() == [2, 4, 5, 2]
    alone = short.score(histories()[:1], [ALL], [2])
    np.testing.assert_allclose(together.score[0], alone.score[0], atol=1e-5)
    np.testing.assert_array_equal(together.is_eligible[0], alone.is_eligible[0])


def test_where_no_visited_place_may_come_the_shortlist_has_another_size() -> None:
    ranker, book = small_ranker(odd_city()), small_book()
    short = ShortlistScorer(ranker, book, 1, 2)
    day = histories()[0]
    new = np.ones(5, dtype=np.bool_)
    new[day.place] = False
    morning = history_of(DAY[:1], book)[0]
    elsewhere = np.arange(5) != morning.place[0]
    scores = short.score([day, day, morning], [ALL, new, elsewhere], [1, 1, 1])
    assert scores.is_eligible.sum(axis=1).tolist() == [1, 1, 2]  # the day leaves one new place
    everywhere = ShortlistScorer(ranker, book, 1, 5).score([morning], [elsewhere], [1])
    exact = PlaceScorer(ranker, book).score([morning], [elsewhere], [1])
    np.testing.assert_allclose(everywhere.score, exact.score, atol=1e-5)
    np.testing.assert_array_equal(everywhere.is_eligible, exact.is_eligible)


def test_the_rest_under_the_softmax_is_estimated_with_the_usual_term_of_the_reader() -> None:
    one = histories()[:1]
    exact, short = (each.score(one, [ALL], [1]) for each in scorers(1))
    castpoi = scorers(1)[1].castpoi
    cheap = castpoi.scorer.foretold(castpoi.encode(end_to_end(one)))[0].numpy()
    # every place of so small a city is among those spread evenly: the mean is that of all
    usual = np.mean([math.exp(exact.score[0, place] - cheap[place]) for place in range(5)])
    total = sum(
        math.exp(exact.score[0, place])
        if short.is_eligible[0, place]
        else math.exp(cheap[place]) * usual
        for place in range(5)
    )
    assert short.log_total[0] == pytest.approx(math.log(total), abs=1e-5)
