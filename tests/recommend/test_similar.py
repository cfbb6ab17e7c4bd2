"""Similar places: by vectors, or by category and distance."""

from copy import copy
from pathlib import Path

import numpy as np
import pytest

from castpoi.baselines.simple import Popularity
from castpoi.checkins import record
from castpoi.core.errors import BadInput, NoCandidateLeft, UnknownPlace
from castpoi.methods.ranker import HasPlaceVectors
from castpoi.recommend.recommender import Recommender, load
from tests.conftest import CommandLine, documented_keys
from tests.contract import odd_city
from tests.messages import refused


def test_the_most_similar_places_have_vectors_of_the_same_direction(
    recommender: Recommender,
) -> None:
    assert isinstance(recommender.ranker, HasPlaceVectors)
    vectors = recommender.ranker.place_vectors()
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosine = dict(zip(recommender.places.ids, unit @ unit[0], strict=True))
    cosine.pop("cafe")
    found = recommender.similar("cafe", k=3)
    assert [each.place for each in found] == sorted(cosine, key=lambda place: -cosine[place])[:3]
    assert found.by == "vectors"
    for each in found:
        assert each.similarity == pytest.approx(cosine[each.place], abs=1e-5)


def test_without_vectors_places_of_the_same_category_come_first(recommender: Recommender) -> None:
    counted = copy(recommender)
    counted.ranker = Popularity.count(odd_city(), part=record.TEST)
    found = counted.similar("cafe")
    assert [each.place for each in found] == ["office", "park", "station", "theatre"]
    assert (found.by, found.places[0].similarity) == ("category and distance", None)


def test_filters_and_closed_places_limit_similar_places(run_folder: Path) -> None:
    recommender = load(run_folder, closed=["office"], private_categories=["Arts"])
    assert {each.place for each in recommender.similar("cafe")} == {"park", "station"}
    assert [each.place for each in recommender.similar("cafe", within_km=2)] == ["park"]
    assert [each.place for each in recommender.similar("cafe", categories="travel")] == ["station"]
    with refused(NoCandidateLeft):
        recommender.similar("cafe", categories="Work")
    with refused(UnknownPlace):
        recommender.similar("cafee")
    with refused(BadInput):
        recommender.similar("cafe", k=0)


def test_the_command_shows_similar_places(run_folder: Path, castpoi: CommandLine) -> None:
    shown = castpoi("similar", run_folder, "cafe", "--k", 2)
    assert "Similar to cafe by vectors" in shown.out
    answer = castpoi("similar", run_folder, "cafe", "--json").json
    assert answer == load(run_folder).similar("cafe").to_dict()
    assert answer.keys() == documented_keys("similar")
