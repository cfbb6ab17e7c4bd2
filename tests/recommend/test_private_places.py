"""Private places are recommended only to people who have visited them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from castpoi.checkins.synthetic.plan import RESIDENCE
from castpoi.core.errors import NoCandidateLeft
from castpoi.recommend.recommender import Recommender, load
from castpoi.recommend.request import Visit
from tests.conftest import CommandLine
from tests.messages import refused
from tests.serving.small_run import DAY, small_book

A_NIGHT = Visit("theatre", "2012-04-01T20:00:00-04:00")
"""A visit to the only private place: the theatre."""


@pytest.fixture(scope="module")
def private(run_folder: Path) -> Recommender:
    return load(run_folder, private_categories=["ARTS", "a category that no place has"])


def recommended(recommender: Recommender, history: list[Visit], **options: Any) -> set[str]:
    return {each.place for each in recommender.recommend(history, **options)}


def test_a_private_place_is_recommended_only_to_those_who_have_been_there(
    private: Recommender,
) -> None:
    assert recommended(private, DAY) == {"cafe", "office", "park", "station"}
    assert "theatre" in recommended(private, [A_NIGHT, *DAY])
    assert "theatre" not in recommended(private, [])


def test_k_public_places_are_returned_if_k_exist(
    private: Recommender, recommender: Recommender
) -> None:
    ranking = [each.place for each in recommender.recommend(DAY, k=5)]
    before_it = [place for place in ranking if place != "theatre"]
    for k in range(1, 5):
        assert [each.place for each in private.recommend(DAY, k=k)] == before_it[:k]


def test_a_private_candidate_is_left_out_with_a_remark(private: Recommender) -> None:
    answer = private.recommend(DAY, candidates=["theatre", "cafe"])
    assert [each.place for each in answer] == ["cafe"]
    assert answer.remarks == ("1 candidate was left out: private, and not in the history",)
    known = private.recommend([A_NIGHT, *DAY], candidates=["theatre", "cafe"])
    assert (len(known), known.remarks) == (2, ())


@pytest.mark.parametrize("options", [{"candidates": ["theatre"]}, {"categories": ["Arts"]}])
def test_only_private_places_are_an_error(private: Recommender, options: dict[str, Any]) -> None:
    with refused(NoCandidateLeft):
        private.recommend(DAY, **options)


def test_a_visit_after_the_time_of_the_request_opens_no_private_place(
    private: Recommender,
) -> None:
    later = Visit("theatre", "2012-04-04T20:00:00-04:00")
    options = {"at": "2012-04-03T23:00:00-04:00"}
    assert "theatre" not in recommended(private, [*DAY, later], **options)


@pytest.mark.parametrize(
    "category",
    [
        "Home (private)",  # Foursquare New York and Tokyo
        "Residential Building (Apartment / Condo)",
        "Community and Government > Residential Building > Apartment or Condo",  # Foursquare now
        "apartments",  # Overture
        "Apartment",  # Gowalla
        RESIDENCE,  # the synthetic city
    ],
)
def test_homes_of_every_published_category_tree_are_private(
    recommender: Recommender, category: str
) -> None:
    home = replace(small_book(), categories=["Food", category, None, "Home Service", "Home > Shop"])
    places = Recommender(recommender.run, home).places
    assert places.is_private.tolist() == [False, True, *[False] * 3]


def test_homes_are_private_by_default(recommender: Recommender, run_folder: Path) -> None:
    home = replace(small_book(), categories=["Food", "Home (private)", None, "Travel", "Arts"])
    of_homes = Recommender(recommender.run, home)
    np.testing.assert_array_equal(of_homes.places.is_private, [False, True, False, False, False])
    assert "office" not in recommended(of_homes, [A_NIGHT])
    public = Recommender(recommender.run, home, private_categories=())
    assert "office" in recommended(public, [A_NIGHT])
    assert not load(run_folder).places.is_private.any()


def test_the_command_line_keeps_private_places_unless_asked_otherwise(
    castpoi: CommandLine, run_folder: Path, tmp_path: Path
) -> None:
    history = tmp_path / "day.csv"
    history.write_text("place,at\ncafe,2012-04-03T08:30:00-04:00\n")

    def left(*words: object) -> set[str]:
        ended = castpoi("recommend", run_folder, "--history", history, "--json", *words)
        return {each["place"] for each in ended.json["recommendations"]}

    everywhere = {"cafe", "office", "park", "station", "theatre"}
    assert left() == everywhere
    arts_and_work = ("--private-category", "Arts", "--private-category", "work")
    assert left(*arts_and_work) == everywhere - {"theatre", "office"}
    assert left(*arts_and_work, "--recommend-private") == everywhere
