"""Traits: what places have in common, and where it stands in the table of shared vectors."""

import numpy as np

from castpoi.model.traits import NO_TRAIT, PlaceTraits
from tests.model.small import CATEGORIES, LAT, LON, PLACES

SIZES = (1.0, 5.0)
CITY = PlaceTraits.of(LAT, LON, CATEGORIES, SIZES)


def rows_of(lat: float, lon: float, category: str | None) -> list[int]:
    rows: list[int] = CITY.traits.rows_of(np.array([lat]), np.array([lon]), [category])[0].tolist()
    return rows


def test_a_place_has_a_category_and_a_square_of_every_size() -> None:
    assert CITY.rows.shape == (PLACES, 3)
    assert CITY.traits.categories == ("Arts", "Food", "Travel")
    assert CITY.rows[:, 0].tolist() == [3, 3, 2, 1, 3, 4, 2]  # 1: no category


def test_each_trait_that_some_place_has_has_a_row_and_no_other() -> None:
    assert set(CITY.rows.flatten().tolist()) == set(range(1, CITY.traits.rows))


def test_only_neighbours_share_a_square() -> None:
    small, large = CITY.rows[:, 1].tolist(), CITY.rows[:, 2].tolist()
    assert small[0] == small[1]  # 240 m apart
    assert small[0] != small[2]  # 1.1 km apart
    assert large[0] == large[1] == large[2]
    assert len(set(small[2:])) == 5
    assert not set(small) & set(large)


def test_a_place_beside_another_of_its_category_has_the_same_traits() -> None:
    assert rows_of(LAT[0] + 1e-5, LON[0], "Food") == CITY.rows[0].tolist()
    assert rows_of(LAT[0] + 1e-5, LON[0], " FOOD ") == CITY.rows[0].tolist()


def test_a_category_that_the_city_does_not_have_is_none() -> None:
    assert rows_of(LAT[0], LON[0], "Zoo") == rows_of(LAT[0], LON[0], None)
    assert rows_of(LAT[0], LON[0], None)[0] == 1


def test_a_place_far_from_all_others_is_of_no_neighbourhood() -> None:
    assert rows_of(-33.9, 151.2, "Food") == [3, NO_TRAIT, NO_TRAIT]


def test_a_city_without_categories_shares_only_neighbourhoods() -> None:
    bare = PlaceTraits.of(LAT, LON, [None, "", " ", None, None, None, None], SIZES)
    assert bare.traits.categories == ()
    assert bare.rows.shape == (PLACES, 2)
    assert bare.rows.min() == 1
    assert bare.traits.rows == CITY.traits.rows - 4


def test_two_spellings_of_a_category_are_one() -> None:
    spelled = PlaceTraits.of(LAT[:3], LON[:3], ["food", "Food", "Arts"], SIZES)
    assert spelled.traits.categories == ("Arts", "Food")
    assert spelled.rows[0, 0] == spelled.rows[1, 0]
