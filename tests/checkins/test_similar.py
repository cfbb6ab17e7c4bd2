"""The most similar known places: near ones, and rather of the same category."""

import numpy as np
import polars as pl
import pytest

from castpoi.checkins import similar
from castpoi.checkins.similar import most_similar
from castpoi.geo.distance import KM_PER_DEGREE

Place = tuple[float, str | None]
"""Kilometres north of the equator, and category."""


def table(*places: Place) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "lat": [km / KM_PER_DEGREE for km, _ in places],
            "lon": [0.0] * len(places),
            "category": pl.Series([category for _, category in places], dtype=pl.String),
        }
    )


def like(new: Place, *known: Place) -> int:
    """The known place most similar to a new one."""
    ((row,),) = most_similar(table(new), table(*known)).tolist()
    return int(row)


def test_of_one_category_the_nearest_is_the_most_similar() -> None:
    assert like((0, "bar"), (2, "bar"), (-1, "bar"), (3, "bar")) == 1


@pytest.mark.parametrize(("km", "expected"), [(9.4, 0), (9.6, 1)])
def test_nine_kilometres_are_worth_a_category(km: float, expected: int) -> None:
    # 9.0 km squared and 3.0 km squared are 9.49 km squared
    assert like((0, "bar"), (km, "bar"), (3, "museum")) == expected


def test_categories_match_regardless_of_case() -> None:
    assert like((0, " BAR"), (2, "Bar"), (1, "museum")) == 0


@pytest.mark.parametrize("unknown", [None, "", "zoo"])
def test_a_category_that_no_known_place_has_says_nothing(unknown: str | None) -> None:
    assert like((0, unknown), (2, "bar"), (1, "museum")) == 1


def test_several_are_found_in_blocks_and_never_more_than_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)
    new, known = (table(*((float(km), None) for km in rng.uniform(0, 50, n))) for n in (20, 30))
    whole = most_similar(new, known, 4)
    assert whole.shape == (20, 4)
    apart = np.abs(new["lat"].to_numpy()[:, None] - known["lat"].to_numpy())
    assert np.sort(whole).tolist() == np.sort(np.argsort(apart)[:, :4]).tolist()
    monkeypatch.setattr(similar, "_AT_ONCE", 50)
    assert np.sort(most_similar(new, known, 4)).tolist() == np.sort(whole).tolist()
    assert most_similar(new, known[:3], 8).shape == (20, 3)
    assert most_similar(new[:0], known).shape == (0, 1)
