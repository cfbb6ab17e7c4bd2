"""The weighted sum of the network and boosted trees."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from castpoi.baselines.boosted.with_network import NetworkAndTrees
from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.checkins.prepare import Preparation, prepare
from castpoi.checkins.synthetic import SynthesisConfig, synthesize, write_checkins
from castpoi.core.errors import BadInput
from castpoi.evaluation.ranking import rank_targets
from castpoi.methods.ranker import Explains, HasPlaceVectors
from castpoi.methods.registry import METHODS
from castpoi.methods.run import Run
from castpoi.recommend.changed_places import with_cold_places
from castpoi.recommend.recommender import load
from castpoi.training.job import TrainingOptions
from castpoi.training.network_and_trees import WEIGHTS
from castpoi.training.train import fit
from tests.messages import refused

BOTH = METHODS.named("castpoi-trees")


@pytest.fixture(scope="module")
def city(tmp_path_factory: pytest.TempPathFactory) -> City:
    """A town with more places than candidates of the trees."""
    folder = tmp_path_factory.mktemp("both")
    config = SynthesisConfig(users=40, places=300, days=30)
    source = write_checkins(synthesize(config, seed=3), folder / "v.csv", config=config, seed=3)
    return prepare([source], folder / "city", Preparation(accept_rhythm=True))


@pytest.fixture(scope="module")
def run(city: City) -> Run:
    options = TrainingOptions(settings={"epochs": "1", "width": "16", "threads": "1"})
    return fit(city, BOTH, seed=1, options=options)


@pytest.fixture(scope="module")
def both(run: Run) -> NetworkAndTrees:
    assert isinstance(run.ranker, NetworkAndTrees)
    return run.ranker


def mrr(both: NetworkAndTrees, city: City) -> float:
    rows = city.targets(record.VALIDATION)
    ranks = rank_targets(both, city.trajectories, rows, method="both")
    return float((1 / ranks).mean())


def test_the_score_is_the_weighted_sum_of_both_scores(city: City, both: NetworkAndTrees) -> None:
    histories = city.trajectories.histories_before(city.targets(record.TEST))
    network = both.network.score(both.network.encode(histories))
    trees = both.trees.score(both.trees.encode(histories))
    some = replace(both, weight=0.25)
    np.testing.assert_allclose(
        some.score(some.encode(histories)), 0.75 * network + 0.25 * trees, rtol=1e-5, atol=1e-5
    )


def test_the_terms_of_both_sum_to_the_score(city: City, both: NetworkAndTrees) -> None:
    explained: object = both
    assert isinstance(explained, Explains)
    some = replace(both, weight=0.5)
    encoded = some.encode(city.trajectories.histories_before(city.targets(record.TEST)))
    candidates = np.arange(0, some.places, 3)
    values = some.term_values(encoded, candidates)
    assert list(values) == list(some.terms)
    assert {"revisit", "own_visits", "distance"} <= set(values)
    np.testing.assert_allclose(
        np.sum(list(values.values()), axis=0), some.score(encoded, candidates), rtol=0, atol=1e-4
    )


def test_no_other_weight_has_a_better_validation_mrr(city: City, both: NetworkAndTrees) -> None:
    best = mrr(both, city)
    assert best == max(mrr(replace(both, weight=float(weight)), city) for weight in WEIGHTS)
    assert both.config["training"]["validation"]["MRR"] == pytest.approx(best)


def test_with_nothing_held_out_both_have_the_same_weight(city: City) -> None:
    options = TrainingOptions(settings={"epochs": "1", "width": "16"})
    ranker = fit(city, BOTH, part=None, options=options).ranker
    assert ranker.config["weight"] == 0.5
    assert ranker.config["trees"]["training"]["epochs"] == 150


def test_a_recommendation_is_explained_by_the_terms_of_both(city: City, run: Run) -> None:
    user = city.users[record.USER_ID][0]
    for each in load(run, city=city).recommend(user=user, explain=True):
        content = each.to_dict()
        assert sum(content["terms"].values()) == pytest.approx(content["score"], abs=1e-4)


def test_new_places_are_refused(run: Run) -> None:
    new = pl.DataFrame({"place": ["bistro"], "lat": [40.7], "lon": [-74.0]})
    with refused(BadInput) as error:
        with_cold_places(run, run.places, new)
    assert "--model castpoi-next --out RUN" in str(error.value)


def test_similar_places_are_those_of_the_network(both: NetworkAndTrees) -> None:
    assert isinstance(both, HasPlaceVectors)
    np.testing.assert_array_equal(both.place_vectors(), both.network.place_vectors())


def test_without_lightgbm_nothing_is_trained(
    city: City, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with refused(BadInput):
        fit(city, BOTH, options=TrainingOptions(settings={"epochs": "1"}))
