from dataclasses import replace

import numpy as np
import pytest

from castpoi.core.errors import BadInput
from castpoi.recommend.area import Box
from tests.cities import CAFE, OFFICE, PARK, STATION, THEATRE
from tests.messages import refused
from tests.serving.small_run import small_book


def test_the_error_for_an_unknown_category_suggests_a_similar_one() -> None:
    with refused(BadInput):
        small_book().is_of_category(["Foot"])


def test_the_error_for_an_unknown_category_lists_frequent_ones() -> None:
    words = "no place has the category 'Zzz'; the most frequent are Food, Work, Outdoors, Travel"
    with pytest.raises(BadInput, match=words):
        small_book().is_of_category(["Zzz"])
    without = replace(small_book(), categories=[None] * 5)
    with refused(BadInput):
        without.is_of_category(["Food"])


def test_the_softmax_of_the_log_popularity_is_the_share_of_check_ins_plus_one() -> None:
    book = small_book()
    share = np.exp(book.log_popularity) / np.exp(book.log_popularity).sum()
    np.testing.assert_allclose(share, (book.checkins + 1) / (book.checkins + 1).sum(), rtol=1e-6)
    # the train part of the small city, counted by hand
    assert book.checkins.tolist() == [3, 2, 2, 1, 0]


def test_a_search_finds_names_categories_and_ids_most_visited_first() -> None:
    book = small_book()
    assert book.find(text="CAFÉ") == [CAFE]
    assert book.find(text="work") == [OFFICE]
    assert book.find(text="t", limit=2) == [PARK, STATION]  # outdoors, travel; arts comes third
    assert book.find() == [CAFE, OFFICE, PARK, STATION, THEATRE]


@pytest.mark.parametrize(
    ("box", "found"),
    [
        ((40.70, -74.0, 40.71, -73.9), [CAFE, OFFICE]),
        ((40.80, -75.0, 40.81, -73.0), [THEATRE]),
        ((40.0, 170.0, 41.0, -73.0), [CAFE, OFFICE, PARK, STATION, THEATRE]),  # the long way round
        ((40.0, 170.0, 41.0, -170.0), []),
    ],
)
def test_a_box_contains_the_places_within_it(box: Box, found: list[int]) -> None:
    assert small_book().find(box=box) == found
