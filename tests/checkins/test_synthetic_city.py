"""The table of a synthetic city: what it holds, and that a seed makes it."""

import hashlib
import os
import re
import subprocess
import sys
from datetime import date, timedelta
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castpoi.checkins.synthetic import SynthesisConfig, synthesize
from castpoi.checkins.synthetic.plan import ZONE
from castpoi.core.errors import BadInput
from tests.messages import refused

SMALL = SynthesisConfig(users=40, places=200, days=20)


def mark_of(checkins: pl.DataFrame) -> str:
    return hashlib.sha256(checkins.write_csv().encode()).hexdigest()


def test_the_same_seed_makes_the_same_checkins() -> None:
    assert synthesize(SMALL, seed=5).equals(synthesize(SMALL, seed=5))


def test_another_seed_makes_another_city() -> None:
    one, other = synthesize(SMALL, seed=5), synthesize(SMALL, seed=6)
    assert set(one["lat"]).isdisjoint(other["lat"])
    assert not one["time"].head(20).equals(other["time"].head(20))


def test_the_number_of_threads_changes_nothing() -> None:
    words = (
        "from castpoi.checkins.synthetic import *; import hashlib; "
        "city = synthesize(SynthesisConfig(users=40, places=200, days=20), seed=5); "
        "print(hashlib.sha256(city.write_csv().encode()).hexdigest())"
    )
    one_thread = {"POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1", "TZ": "Asia/Tokyo"}
    ended = subprocess.run(
        [sys.executable, "-c", words],
        env=os.environ | one_thread,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout.strip() == mark_of(synthesize(SMALL, seed=5))


def test_the_table_has_the_columns_that_prepare_reads() -> None:
    city = synthesize(SMALL, seed=1)
    assert city.schema == {
        "user": pl.String,
        "place": pl.String,
        "lat": pl.Float64,
        "lon": pl.Float64,
        "time": pl.Datetime("us", "UTC"),
        "category": pl.String,
        "name": pl.String,
    }
    assert city.null_count().sum_horizontal().item() == 0
    assert city["time"].is_sorted()


def test_a_place_has_one_id_one_point_one_category_and_one_name() -> None:
    city = synthesize(SMALL, seed=1)
    places = city.select("place", "lat", "lon", "category", "name").unique()
    assert places["place"].is_unique().all()
    assert places.select("lat", "lon").is_unique().all()


@given(
    users=st.integers(1, 6),
    places=st.integers(20, 60),
    days=st.integers(1, 9),
    rate=st.floats(0.01, 20.0),
    first_day=st.dates(date(2023, 1, 1), date(2025, 12, 31)),
    seed=st.integers(0, 2**63),
)
@settings(max_examples=15, deadline=None)
def test_any_city_has_its_size_and_days(
    users: int, places: int, days: int, rate: float, first_day: date, seed: int
) -> None:
    config = SynthesisConfig(
        users=users, places=places, days=days, checkins_per_day=rate, first_day=first_day
    )
    city = synthesize(config, seed=seed)
    count = city.group_by("user").len()
    assert count.height == users
    assert count["len"].to_list() >= [3] * users
    assert city["place"].n_unique() <= places
    assert city.select("user", "time").is_unique().all()
    local = city["time"].dt.convert_time_zone(ZONE).dt.date()
    assert set(local) <= {first_day + timedelta(days=day) for day in range(days)}


@pytest.mark.parametrize(
    "settings",
    [
        {"users": 0},
        {"places": 19},
        {"days": 0},
        {"days": 3_651},
        {"checkins_per_day": 0.0},
        {"checkins_per_day": float("nan")},
        {"checkins_per_day": 51.0},
        {"first_day": date(1900, 1, 1)},
        {"users": 20_000_000},
        {"exploration_rho": 1.1},
        {"habit_share": -0.1},
        {"jump_exponent": 0.0},
        {"jump_offset_km": -1.0},
        {"jump_cutoff_km": float("inf")},
        {"exploration_gamma": -0.2},
        {"popularity_exponent": -1.0},
    ],
    ids=str,
)
def test_settings_out_of_range_are_refused(settings: dict[str, object]) -> None:
    with refused(BadInput):
        SynthesisConfig(**settings)  # type: ignore[arg-type]


def test_a_negative_seed_is_refused() -> None:
    with refused(BadInput):
        synthesize(SMALL, seed=-1)


def test_every_test_named_in_the_guide_exists() -> None:
    root = Path(__file__).resolve().parents[2]
    named = set(re.findall(r"`(test_\w+)`", (root / "docs" / "synthetic-city.md").read_text()))
    written = "".join(path.read_text() for path in Path(__file__).parent.glob("test_synthetic*.py"))
    files = {path.stem for path in Path(__file__).parent.glob("test_synthetic*.py")}
    assert len(named) > 20
    assert named <= set(re.findall(r"def (test_\w+)\(", written)) | files
