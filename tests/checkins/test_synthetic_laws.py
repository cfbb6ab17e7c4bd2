"""The published laws of human mobility, read back from the check-ins of synthetic cities.

docs/synthetic-city.md names for each law its property, its parameter and its test here.
"""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from castpoi.checkins.synthetic import SynthesisConfig, synthesize
from castpoi.checkins.synthetic.plan import (
    EXPLORATION_GAMMA,
    EXPLORATION_RHO,
    ZONE,
    lay_out_city,
)
from castpoi.geo.distance import haversine_km

CONFIG = SynthesisConfig(users=1_000, places=5_000)


@pytest.fixture(scope="module")
def town() -> pl.DataFrame:
    return with_moves(synthesize(CONFIG, seed=7))


def with_moves(checkins: pl.DataFrame) -> pl.DataFrame:
    """Check-ins by user and time, with local hour, revisit, known places and jump length."""
    local = pl.col("time").dt.convert_time_zone(ZONE)
    checkins = checkins.sort("user", "time").with_columns(
        hour=local.dt.hour().cast(pl.Int64),
        is_weekend=local.dt.weekday() >= 6,
        is_new=pl.struct("user", "place").is_first_distinct(),
        is_last=pl.col("user") != pl.col("user").shift(-1, fill_value=""),
    )
    known = pl.col("is_new").cast(pl.Int64).cum_sum().over("user") - pl.col("is_new")
    lat, lon = checkins["lat"].to_numpy(), checkins["lon"].to_numpy()
    km = np.append(np.nan, haversine_km(lat[:-1], lon[:-1], lat[1:], lon[1:]))
    same = (pl.col("user") == pl.col("user").shift(1)).fill_null(value=False)
    return checkins.with_columns(
        known=known, jump_km=pl.when(same).then(pl.Series(km)).otherwise(None)
    )


def mean(frame: pl.DataFrame, column: str) -> float:
    return float(frame[column].cast(pl.Float64).to_numpy().mean())


def moves_km(checkins: pl.DataFrame) -> NDArray[np.float64]:
    lengths = checkins["jump_km"].drop_nulls().to_numpy()
    return lengths[lengths > 0]


def by_hour(checkins: pl.DataFrame) -> NDArray[np.float64]:
    return np.bincount(checkins["hour"].to_numpy(), minlength=24) / checkins.height


def visits_by_rank(checkins: pl.DataFrame) -> NDArray[np.int64]:
    """Check-ins of each place that has ten or more, as in the filtered real city; falling."""
    count = checkins.group_by("place").len()["len"].cast(pl.Int64).to_numpy()
    return -np.sort(-count[count >= 10])


def zipf_exponent(visits: NDArray[np.int64]) -> float:
    rank = np.arange(1, len(visits) + 1)
    middle = (rank >= 10) & (rank <= len(visits) // 5)
    return float(np.polyfit(np.log(rank[middle]), np.log(visits[middle]), 1)[0])


# exploration and preferential return


def test_the_probability_of_a_new_place_falls_with_the_known_places_as_song_found(
    town: pl.DataFrame,
) -> None:
    edges = [8, 16, 32, 64, 128]
    probabilities, expected = [], []
    for low, high in pairwise(edges):
        some = town.filter(pl.col("known").is_between(low, high, closed="left"))
        probabilities.append(mean(some, "is_new"))
        law = EXPLORATION_RHO * some["known"].to_numpy() ** -EXPLORATION_GAMMA
        expected.append(law.mean())
    assert probabilities == sorted(probabilities, reverse=True)
    # a few of a hundred explorers find only places they know
    assert probabilities == pytest.approx(expected, rel=0.10)


@pytest.mark.parametrize(("users", "places"), [(500, 2_000), (1_000, 5_000)])
def test_about_64_percent_of_last_checkins_are_revisits(users: int, places: int) -> None:
    shares = []
    for seed in (1, 2, 3):
        city = with_moves(synthesize(SynthesisConfig(users=users, places=places), seed=seed))
        shares.append(1 - mean(city.filter("is_last"), "is_new"))
    assert 0.60 <= np.mean(shares) <= 0.68


# jumps


def test_jumps_have_a_heavier_tail_than_an_exponential_and_end_at_the_city(
    town: pl.DataFrame,
) -> None:
    middle, far = np.percentile(moves_km(town), [50, 95])
    assert far / middle > 1.2 * np.log(20) / np.log(2)  # an exponential has ln 20 / ln 2
    assert moves_km(town).max() < 60


# popularity and neighbourhoods


def test_popularity_falls_with_rank_like_zipf(town: pl.DataFrame) -> None:
    visits = visits_by_rank(town)
    tenth = visits[: len(visits) // 10].sum() / visits.sum()
    assert zipf_exponent(visits) == pytest.approx(-0.5, abs=0.12)
    assert 0.30 < tenth < 0.45


def test_attractiveness_is_zipfs_law_of_its_exponent() -> None:
    plan = lay_out_city(SynthesisConfig(places=50), np.random.default_rng(1))
    assert np.sort(plan.attractiveness)[::-1] == pytest.approx(1.0 / np.arange(1, 51) ** 0.75)


def test_large_neighbourhoods_have_the_more_attractive_places() -> None:
    plan = lay_out_city(SynthesisConfig(places=4_000), np.random.default_rng(1))
    large = plan.neighbourhood < 4
    assert np.median(plan.attractiveness[large]) > 1.5 * np.median(plan.attractiveness[~large])


def test_places_are_closer_together_than_in_an_even_city() -> None:
    """Clark and Evans: mean distance to the nearest place, over that of an even city."""
    plan = lay_out_city(SynthesisConfig(places=2_000), np.random.default_rng(5))
    points = plan.xy_km.T
    even = np.random.default_rng(6).uniform(points.min(axis=0), points.max(axis=0), points.shape)

    def nearest_km(some: NDArray[np.float64]) -> float:
        return float(cKDTree(some).query(some, k=2)[0][:, 1].mean())

    assert nearest_km(points) < 0.5 * nearest_km(even)


# anchors and habits


def test_home_and_work_have_the_largest_shares_of_visits(town: pl.DataFrame) -> None:
    shares = (
        town.group_by("user", "place").len().sort("len", descending=True)
        .group_by("user", maintain_order=True).agg(pl.col("len") / pl.col("len").sum())
    )  # fmt: skip
    assert 0.18 < np.mean([life[0] for life in shares["len"]]) < 0.34
    assert 0.30 < np.mean([sum(life[:2]) for life in shares["len"]]) < 0.50
    anchors = town.filter(pl.col("category").is_in(["Residence", "Office"]))
    by_user = anchors.group_by("user", "category").agg(pl.col("place").n_unique())
    assert by_user["place"].max() == 1  # nobody visits another one's home


def test_people_work_on_workdays_and_sleep_at_home(town: pl.DataFrame) -> None:
    at_work, at_home = pl.col("category") == "Office", pl.col("category") == "Residence"
    day = town.filter(pl.col("hour").is_between(9, 16))
    workday, weekend = day.filter(~pl.col("is_weekend")), day.filter("is_weekend")
    night = town.filter(pl.col("hour").is_between(1, 4))
    assert workday.select(at_work.mean()).item() > 1.8 * weekend.select(at_work.mean()).item()
    assert night.select(at_home.mean()).item() > 2 * workday.select(at_home.mean()).item()


def test_categories_have_their_hours(town: pl.DataFrame) -> None:
    def share_at(category: str, first: int, last: int) -> float:
        some = town.filter(pl.col("category") == category)
        return float(by_hour(some)[first : last + 1].sum())

    everywhere = by_hour(town)
    assert share_at("Coffee Shop", 7, 9) > 1.15 * everywhere[7:10].sum()
    assert share_at("Lunch Counter", 11, 13) > 1.5 * everywhere[11:14].sum()
    assert share_at("Bar", 21, 23) > 1.5 * everywhere[21:24].sum()


def test_the_present_place_predicts_the_next_one(town: pl.DataFrame) -> None:
    """A model of steps can beat counting: the three commonest steps from a place are common."""
    steps = (
        town.with_columns(before=pl.col("place").shift(1).over("user"))
        .filter(pl.col("is_new") & pl.col("before").is_not_null())
        .group_by("before", "place").len()
        .filter(pl.col("len").sum().over("before") >= 30)
    )  # fmt: skip
    assert steps["before"].n_unique() > 100
    common = steps.group_by("before").agg(
        share=pl.col("len").sort(descending=True).head(3).sum() / pl.col("len").sum()
    )
    assert mean(common, "share") > 0.30  # 0.19 without companions


def test_people_prefer_different_categories(town: pl.DataFrame) -> None:
    """Of two halves of the places a person finds, one predicts the categories of the other."""
    found = town.filter("is_new", ~pl.col("category").is_in(["Residence", "Office"]))
    found = found.with_columns(
        half=pl.int_range(pl.len()).over("user") % 2, count=pl.len().over("user")
    ).filter(pl.col("count") >= 30)
    shares = [
        found.filter(pl.col("half") == half)
        .pivot("category", index="user", values="count", aggregate_function="len")
        .sort("user").fill_null(0).select(sorted(set(found["category"]))).to_numpy()
        for half in (0, 1)
    ]  # fmt: skip
    first, second = (half / half.sum(axis=1, keepdims=True) for half in shares)
    away_from_own = np.abs(first - second).sum(axis=1).mean()
    away_from_another = np.abs(first - np.roll(second, 1, axis=0)).sum(axis=1).mean()
    assert away_from_own < 0.9 * away_from_another  # equal without tastes


# rhythm


def test_the_city_is_quietest_between_one_and_seven(town: pl.DataFrame) -> None:
    for is_weekend in (False, True):
        hours = by_hour(town.filter(pl.col("is_weekend") == is_weekend))
        assert int(hours.argmin()) in (3, 4, 5)
        assert set(np.argsort(hours)[:4].tolist()) <= set(range(1, 8))
    hours = by_hour(town)
    assert hours[9:21].mean() > 2.5 * hours[1:7].mean()


def test_workdays_peak_in_the_morning_and_weekends_in_the_afternoon(town: pl.DataFrame) -> None:
    workday, weekend = by_hour(town.filter(~pl.col("is_weekend"))), by_hour(
        town.filter("is_weekend")
    )  # fmt: skip
    assert int(workday.argmax()) in (8, 9)
    assert 12 <= int(weekend.argmax()) <= 18
    assert workday[7:10].sum() > 1.8 * weekend[7:10].sum()
    assert weekend[0:4].sum() > 1.5 * workday[0:4].sum()


def test_the_rhythm_keeps_local_time_across_the_change_of_clocks(town: pl.DataFrame) -> None:
    change = pl.datetime(2024, 3, 10, 7, time_zone="UTC")
    winter, summer = town.filter(pl.col("time") < change), town.filter(pl.col("time") >= change)
    assert min(winter.height, summer.height) > 10_000
    assert int(by_hour(winter).argmin()) in (3, 4)
    assert int(by_hour(summer).argmin()) in (3, 4)
    assert by_hour(winter) == pytest.approx(by_hour(summer), abs=0.012)  # 8 to 9 differ by 0.02


def test_people_have_different_numbers_of_checkins(town: pl.DataFrame) -> None:
    count = town.group_by("user").len()["len"].cast(pl.Int64).to_numpy()
    assert count.min() >= 3
    assert 60 < count.mean() < 120
    assert 0.4 < np.median(count) / count.mean() < 0.75


@pytest.mark.realdata
def test_the_city_resembles_new_york(town: pl.DataFrame, shared_data: Path) -> None:
    columns: Any = {"poi": "place", "utc_time": "time"}
    text = pl.read_csv(shared_data / "nyc.csv.gz", infer_schema=False).rename(columns)
    nyc = with_moves(
        text.select(
            "user",
            "place",
            pl.col("lat", "lon").cast(pl.Float64),
            pl.col("time").str.to_datetime("%Y-%m-%dT%H:%M:%SZ", time_zone="UTC"),
        )
    )
    assert np.corrcoef(by_hour(town), by_hour(nyc))[0, 1] > 0.97
    last = [1 - mean(city.filter("is_last"), "is_new") for city in (town, nyc)]
    assert last[0] == pytest.approx(last[1], abs=0.05)
    exponents = [zipf_exponent(visits_by_rank(city)) for city in (town, nyc)]
    assert exponents[0] == pytest.approx(exponents[1], abs=0.1)
    for percent, factor in ((50, 2.0), (75, 1.5), (95, 1.5)):
        ours, real = (np.percentile(moves_km(city), percent) for city in (town, nyc))
        assert 1 / factor < ours / real < factor
