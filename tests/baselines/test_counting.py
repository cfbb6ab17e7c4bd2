"""The counting methods, worked by hand on a street of five places."""

from itertools import pairwise

import numpy as np
import pytest

from castpoi.baselines.counting import known_rows, parts_before
from castpoi.baselines.markov import Markov
from castpoi.baselines.simple import Nearest, Popularity, Recent, Revisit
from castpoi.checkins import record
from castpoi.checkins.trajectory import Histories
from castpoi.core.errors import BadInput, TooFewCheckins
from tests.cities import CAFE, OFFICE, PARK, STATION, THEATRE, histories_of, small_city
from tests.contract import odd_city
from tests.messages import refused


def history(*places: int) -> Histories:
    return histories_of(list(places))


def test_test_histories_are_train_and_validation_and_validation_histories_are_train() -> None:
    assert parts_before("test") == ("train", "validation")
    assert parts_before("validation") == ("train",)
    city = odd_city()
    parts = city.trajectories.part[known_rows(city, "validation")]
    assert set(parts.tolist()) == {record.PARTS.index("train")}


def test_train_cannot_be_predicted() -> None:
    with refused(BadInput):
        parts_before("train")


def test_a_city_without_known_checkins_has_nothing_to_count() -> None:
    city = small_city([(0, CAFE, "2012-04-02 12:00")], ["test"])
    with refused(TooFewCheckins):
        Popularity.count(city, part="test")


def test_popularity_before_test_counts_train_and_validation() -> None:
    scores = Popularity.count(odd_city(), part="test").score(history(CAFE, PARK))
    assert scores.tolist() == [[4, 3, 2, 1, 0]]


def test_revisit_multiplies_own_visits_by_popularity_and_unvisited_places_score_zero() -> None:
    ranker = Revisit.count(odd_city(), part="test")
    scores = ranker.score(ranker.encode(history(PARK, CAFE, PARK, THEATRE)))
    assert scores.tolist() == [[4, 0, 2 * 2, 0, 0]]


def test_revisit_counts_only_the_last_visits_of_a_history() -> None:
    ranker = Revisit(popularity=np.array([10, 1, 1, 1, 1]), window=3)
    scores = ranker.score(ranker.encode(history(CAFE, CAFE, OFFICE, OFFICE, PARK)))
    assert scores.tolist() == [[0, 2, 1, 0, 0]]


def test_revisit_popularity_forgets_all_but_the_last_512_visits_of_a_user() -> None:
    long = [(0, CAFE, "2012-04-01 00:00")] * 3 + [(0, PARK, "2012-04-02 00:00")] * 512
    short = [(1, CAFE, "2012-04-01 00:00")]
    city = small_city(long + short, [record.TRAIN] * 516)
    ranker = Revisit.count(city, part="test")
    assert ranker.popularity.tolist() == [1, 0, 512, 0, 0]


def test_recent_ranks_the_last_place_first_and_unvisited_places_last() -> None:
    ranker = Recent.count(odd_city(), part="test")
    scores = ranker.score(ranker.encode(history(CAFE, OFFICE, CAFE, PARK)))
    assert scores.tolist() == [[3, 2, 4, 0, 0]]


def test_nearest_is_minus_the_kilometres_from_the_last_visit() -> None:
    ranker = Nearest.count(odd_city(), part="test")
    scores = ranker.score(ranker.encode(history(THEATRE, CAFE)))
    assert scores[0] == pytest.approx([0, -0.4, -1.5, -4, -12], abs=0.01)


def test_nearest_falls_back_on_popularity_when_nobody_has_been_anywhere() -> None:
    ranker = Nearest.count(odd_city(), part="test")
    scores = ranker.score(ranker.encode(histories_of([], [CAFE])))
    assert scores[0].tolist() == [4, 3, 2, 1, 0]
    assert scores[1, CAFE] == 0


def test_markov_prefers_own_moves_then_the_crowd_then_popularity() -> None:
    # The crowd moves from the cafe to the office 3 times; popularity is 4, 3, 2, 1, 0 of 10.
    ranker = Markov.count(odd_city(), part="test")
    scores = ranker.score(ranker.encode(history(CAFE, PARK, CAFE, PARK, CAFE, STATION, CAFE)))
    popularity = 0.4 * 0.4 * np.array([4, 3, 2, 1, 0]) / 10
    assert scores[0] == pytest.approx([popularity[0], 0.4, 2 / 3, 1 / 3, 0])


def test_markov_leaves_popularity_to_a_place_nobody_has_left() -> None:
    ranker = Markov.count(odd_city(), part="test")
    scores = ranker.score(ranker.encode(history(THEATRE)))
    assert scores[0] == pytest.approx(0.16 * np.array([0.4, 0.3, 0.2, 0.1, 0]))


def test_markov_counts_no_move_from_one_user_to_the_next() -> None:
    city = small_city(
        [
            (0, CAFE, "2012-04-02 12:00"),
            (0, OFFICE, "2012-04-02 13:00"),
            (1, PARK, "2012-04-02 14:00"),
            (1, STATION, "2012-04-02 15:00"),
        ],
        [record.TRAIN] * 4,
    )
    assert Markov.count(city, part="test").move_to.tolist() == [OFFICE, STATION]


def test_markov_counts_no_move_over_a_checkin_that_it_may_not_know() -> None:
    city = small_city(
        [(0, place, f"2012-04-0{place + 1} 12:00") for place in (CAFE, OFFICE, PARK, STATION)],
        [record.TRAIN, record.TRAIN, record.TEST, record.TRAIN],
    )
    assert Markov.count(city, part="test").move_to.tolist() == [OFFICE]


def test_markov_agrees_with_a_slow_loop() -> None:
    rng = np.random.default_rng(3)
    places = 5
    visits = [
        (user, int(place), f"2012-04-{day + 1:02d} 12:00")
        for user in range(6)
        for day, place in enumerate(rng.integers(0, places, size=9))
    ]
    city = small_city(visits, ([record.TRAIN] * 7 + [record.VALIDATION, record.TEST]) * 6)
    ranker = Markov.count(city, part="test")
    batched = histories_of(
        [0, 1, 0, 2, 0], [], [4], [2, 2, 2], rng.integers(0, places, 40).tolist()
    )
    known = [[place for user, place, _ in visits if user == who][:8] for who in range(6)]
    crowd = [move for one in known for move in pairwise(one)]
    everywhere = [place for one in known for place in one]
    expected = [
        [_slow_markov(_one(batched, number), crowd, everywhere, place) for place in range(places)]
        for number in range(len(batched))
    ]
    np.testing.assert_allclose(ranker.score(ranker.encode(batched)), expected, rtol=1e-6)


def _one(batched: Histories, number: int) -> list[int]:
    return [int(p) for p in batched.place[batched.bounds[number] : batched.bounds[number + 1]]]


def _slow_markov(
    own: list[int], crowd: list[tuple[int, int]], everywhere: list[int], place: int
) -> float:
    popularity = 0.16 * everywhere.count(place) / len(everywhere)
    if not own:
        return popularity
    last = own[-1]
    moves = [target for origin, target in pairwise(own) if origin == last]
    if place in moves:
        return moves.count(place) / len(moves)
    moves = [target for origin, target in crowd if origin == last]
    if place in moves:
        return 0.4 * moves.count(place) / len(moves)
    return popularity
