"""Boosted trees: their candidates, features, explanations and what a training may count."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from castpoi.baselines.boosted.pairs import (
    FEATURES,
    NEAR,
    NEXT,
    POPULAR,
    TERMS,
    Crowd,
    Pairs,
    Places,
    nearest_places,
    pairs_of,
)
from castpoi.baselines.boosted.ranker import BoostedRanker
from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.checkins.prepare import Preparation, prepare
from castpoi.checkins.synthetic import SynthesisConfig, synthesize, write_checkins
from castpoi.checkins.trajectory import Histories, Trajectories
from castpoi.core.errors import BadInput
from castpoi.evaluation.evaluate import evaluate
from castpoi.geo.distance import haversine_km, unit_vectors
from castpoi.methods.ranker import Explains
from castpoi.methods.registry import METHODS
from castpoi.methods.run import Run, load_run
from castpoi.recommend.recommender import load
from castpoi.training.boosted import examples, last_targets
from castpoi.training.job import TrainingOptions
from castpoi.training.train import fit
from tests.cities import histories_of
from tests.messages import refused

BOOSTED = METHODS.named("boosted")


@pytest.fixture(scope="module")
def city(tmp_path_factory: pytest.TempPathFactory) -> City:
    """A town with far more places than candidates."""
    folder = tmp_path_factory.mktemp("boosted")
    config = SynthesisConfig(users=40, places=400, days=30)
    checkins = synthesize(config, seed=3)
    source = write_checkins(checkins, folder / "checkins.csv", config=config, seed=3)
    return prepare([source], folder / "city", Preparation(accept_rhythm=True))


@pytest.fixture(scope="module")
def run(city: City) -> Run:
    return fit(city, BOOSTED, seed=1, options=TrainingOptions(settings={"epochs": "12"}))


@pytest.fixture(scope="module")
def ranker(run: Run) -> BoostedRanker:
    assert isinstance(run.ranker, BoostedRanker)
    return run.ranker


def histories_of_tests(city: City) -> Histories:
    return city.trajectories.histories_before(city.targets(record.TEST))


def places_of(city: City) -> Places:
    return Places(
        points=unit_vectors(city.lat, city.lon),
        near=nearest_places(city.lat, city.lon),
        category=np.arange(city.places.height) % 7,
    )


def nobody(count: int) -> Histories:
    """Empty histories: no visit is subtracted."""
    return histories_of(*[[]] * count)


def others(visits: Trajectories, user: int) -> Histories:
    kept = visits.user != user
    return Trajectories(
        **{name: array[kept] for name, array in vars(visits).items()}
    ).as_histories()


def assert_equal(some: Pairs, other: Pairs) -> None:
    np.testing.assert_array_equal(some.owner, other.owner)
    np.testing.assert_array_equal(some.place, other.place)
    np.testing.assert_array_equal(some.features, other.features)


def test_a_user_that_is_subtracted_leaves_the_pairs_that_the_other_users_give(city: City) -> None:
    visits, places = city.train_trajectories, places_of(city)
    everybody = Crowd.of(city.train, places=city.places.height)
    for user in range(0, 40, 8):
        rows = np.flatnonzero(visits.user == user)
        own = Histories.of_one(
            place=visits.place[rows],
            at_us=visits.at_us[rows],
            offset_minutes=visits.offset_minutes[rows],
        )
        before = visits.histories_before(rows[len(rows) // 2 :][:1])
        crowd = Crowd.of(others(visits, user), places=city.places.height)
        assert_equal(
            pairs_of(before, own, everybody, places, window=512),
            pairs_of(before, nobody(1), crowd, places, window=512),
        )


def test_an_example_does_not_change_with_the_later_visits_of_its_user(
    city: City, ranker: BoostedRanker
) -> None:
    visits = city.train_trajectories
    rows = np.flatnonzero(visits.user == 5)
    target, later = rows[len(rows) // 2], rows[len(rows) // 2 + 1 :]
    place = visits.place.copy()
    place[later] = visits.place[target]
    moved = replace(visits, place=place)
    found = [
        examples(replace(ranker, **vars(Crowd.of(each.as_histories(), places=ranker.places))),
                 each, np.array([target]), leave_user_out=True)
        for each in (visits, moved)
    ]  # fmt: skip
    np.testing.assert_array_equal(found[0].features, found[1].features)
    np.testing.assert_array_equal(found[0].is_target, found[1].is_target)


def test_the_last_targets_of_every_user_are_equally_many(city: City) -> None:
    visits = city.train_trajectories
    people = len(np.unique(visits.user))
    rows = last_targets(visits, 3 * people)
    users, counts = np.unique(visits.user[rows], return_counts=True)
    visits_before = np.bincount(visits.user)[users] - 1
    np.testing.assert_array_equal(counts, np.minimum(visits_before, 3))
    assert not np.isin(rows, visits.starts).any()


def test_candidates_are_known_near_usual_next_and_popular_places(
    city: City, ranker: BoostedRanker
) -> None:
    histories = histories_of_tests(city)
    pairs = ranker.pairs(histories, nobody(len(histories)))
    train = city.train
    follows = np.flatnonzero(train.owner[1:] == train.owner[:-1])
    popular = np.argsort(-np.bincount(train.place, minlength=ranker.places), kind="stable")
    for number in range(0, len(histories), 7):
        own = histories.place[histories.bounds[number] : histories.bounds[number + 1]]
        last = own[-1]
        km = haversine_km(city.lat[last], city.lon[last], city.lat, city.lon)
        km[last] = np.inf
        after = train.place[follows[train.place[follows] == last] + 1]
        moves = np.bincount(after, minlength=ranker.places)
        usual = np.argsort(-moves, kind="stable")[:NEXT]
        expected = (
            set(own.tolist())
            | set(np.argsort(km, kind="stable")[:NEAR].tolist())
            | set(usual[moves[usual] > 0].tolist())
            | set(popular[:POPULAR].tolist())
        )
        assert set(pairs.place[pairs.owner == number].tolist()) == expected


def test_crowd_features_are_those_counted_one_by_one(city: City, ranker: BoostedRanker) -> None:
    histories = histories_of_tests(city)
    pairs = ranker.pairs(histories, nobody(len(histories)))
    train, names = city.train, [feature.name for feature in FEATURES]
    user = train.owner
    lengths = histories.lengths[pairs.owner]
    for pair in np.flatnonzero(lengths > 1)[::97].tolist():
        own = histories.place[histories.bounds[pairs.owner[pair]] :][
            : histories.lengths[pairs.owner[pair]]
        ]
        there = pairs.place[pair]
        moves = [
            [
                train.place[at + gap]
                for at in np.flatnonzero(train.place == own[-gap])
                if at + gap < len(user) and user[at] == user[at + gap]
            ]
            for gap in (1, 2)
        ]
        km = [
            haversine_km(city.lat[each], city.lon[each], city.lat[there], city.lon[there])
            for each in own
        ]
        expected = {
            "others' moves from here": np.log1p(moves[0].count(there)),
            "share of others' moves from here": moves[0].count(there) / max(1, len(moves[0])),
            "others' visits two after the place before here": np.log1p(moves[1].count(there)),
            "others' visits": np.log1p((train.place == there).sum()),
            "other people": np.log1p(len(set(user[train.place == there].tolist()))),
            "km to the last place": np.log1p(km[-1]),
            "km to the nearest own place": np.log1p(min(km)),
        }
        for name, value in expected.items():
            found = pairs.features[pair, names.index(name)]
            assert found == pytest.approx(value, rel=1e-4, abs=1e-3), name


def test_other_places_are_below_all_candidates_by_popularity(
    city: City, ranker: BoostedRanker
) -> None:
    encoded = ranker.encode(histories_of_tests(city))
    scores = ranker.score(encoded)
    is_candidate = np.zeros(scores.shape, dtype=np.bool_)
    is_candidate[encoded.owner, encoded.place] = True
    assert 0 < is_candidate.mean() < 0.7
    highest_other = np.where(is_candidate, -np.inf, scores).max(axis=1)
    assert (highest_other < np.where(is_candidate, scores, np.inf).min(axis=1)).all()
    rest = np.flatnonzero(~is_candidate[0])
    by_score = rest[np.argsort(-scores[0, rest], kind="stable")]
    np.testing.assert_array_equal(
        ranker.visits[by_score], np.sort(ranker.visits[rest], kind="stable")[::-1]
    )


def test_the_terms_sum_to_the_score_of_candidates_and_of_all_other_places(
    city: City, ranker: BoostedRanker
) -> None:
    some: object = ranker
    assert isinstance(some, Explains)
    encoded = ranker.encode(histories_of_tests(city))
    shared = np.arange(0, ranker.places, 3)
    own = np.tile(shared, (encoded.histories, 1))
    own[1] = own[1, ::-1]
    for candidates in (shared, own):
        values = ranker.term_values(encoded, candidates)
        assert list(values) == list(ranker.terms)
        total = np.sum(list(values.values()), axis=0)
        scores = np.take_along_axis(
            ranker.score(encoded), np.broadcast_to(candidates, own.shape), 1
        )
        np.testing.assert_allclose(total, scores, rtol=0, atol=1e-4)
    assert np.abs(values["own_visits"]).max() > 0.1


def test_the_trees_do_not_depend_on_the_number_of_cores(city: City, ranker: BoostedRanker) -> None:
    options = TrainingOptions(settings={"epochs": "12", "threads": "2"})
    again = fit(city, BOOSTED, seed=1, options=options).ranker
    histories = histories_of_tests(city)
    scores, others = (each.score(each.encode(histories)) for each in (ranker, again))
    np.testing.assert_array_equal(scores, others)


def test_the_number_of_trees_with_the_best_validation_mrr_is_kept(run: Run) -> None:
    training = run.ranker.config["training"]
    rounds = [line for line in run.log.splitlines() if '"epoch finished"' in line]
    assert len(rounds) == training["epochs"] <= 12
    assert 1 <= training["best_epoch"] <= training["epochs"]


def test_a_run_is_saved_without_pickles_and_ranks_as_before(
    city: City, run: Run, tmp_path: Path
) -> None:
    run.save(tmp_path / "run")
    assert {each.suffix for each in (tmp_path / "run").iterdir()} == {
        *(".json", ".jsonl", ".parquet", ".safetensors")
    }
    again = load_run(tmp_path / "run").ranker
    before, after = (evaluate(each, city, method="boosted") for each in (run.ranker, again))
    assert before.ranks.equals(after.ranks)


def test_a_recommendation_is_explained_by_terms_and_by_visits(city: City, run: Run) -> None:
    user = city.users[record.USER_ID][0]
    for each in load(run, city=city).recommend(user=user, explain=True):
        content = each.to_dict()
        assert tuple(content["terms"]) == tuple(TERMS)
        assert sum(content["terms"].values()) == pytest.approx(content["score"], abs=1e-4)
        assert all(visit["score_without"] < each.score for visit in content["visits"])


def test_without_lightgbm_the_sentence_names_the_extra(
    city: City, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with refused(BadInput):
        fit(city, BOOSTED, options=TrainingOptions(settings={"epochs": "1"}))


def test_a_graphics_card_is_refused(city: City) -> None:
    with refused(BadInput):
        fit(city, BOOSTED, options=TrainingOptions(device="cuda"))


def test_with_nothing_held_out_all_trees_are_kept(city: City) -> None:
    options = TrainingOptions(settings={"epochs": "3"})
    training = fit(city, BOOSTED, part=None, options=options).ranker.config["training"]
    assert (training["epochs"], training["best_epoch"], training["validation"]) == (3, 3, {})
