"""The table of a synthetic city: what it holds, and that a seed makes it."""

import hashlib
import os
import re
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from scipy import integrate, stats

from castpoi.checkins.synthetic import SynthesisConfig, synthesize
from castpoi.checkins.synthetic.plan import (
    CATEGORIES,
    LONGEST_JUMP_KM,
    ZONE,
    JumpLaw,
    People,
    appeal_by_slot,
    index_of,
    lay_out_city,
    settle_people,
)
from castpoi.checkins.synthetic.walk import (
    ANCHORS,
    Calendar,
    KnownPlaces,
    Walk,
    draw_instants,
    exploration_probability,
)
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


HOME, WORK, BAKERY, BAR, PARK = range(5)


# jumps


def test_jump_lengths_follow_the_truncated_power_law() -> None:
    def density(km: float) -> float:
        return float((km + 1.5) ** -1.75 * np.exp(-km / 20.0))

    whole = integrate.quad(density, 0, LONGEST_JUMP_KM)[0]
    lengths = np.sort(JumpLaw().lengths_km((20_000,), np.random.default_rng(1)))
    for km in (0.1, 0.5, 1, 2, 5, 10, 20, 40):
        share = np.searchsorted(lengths, km) / len(lengths)
        assert share == pytest.approx(integrate.quad(density, 0, km)[0] / whole, abs=0.012)


# memory


@given(arrays(np.int64, (40, 2), elements=st.integers(0, 1_000_000)))
@settings(max_examples=20, deadline=None)
def test_a_known_place_is_always_recognised(pairs: NDArray[np.int64]) -> None:
    known = KnownPlaces(len(pairs))
    known.add(pairs[:, 0], pairs[:, 1])
    assert known.contains(pairs[:, 0], pairs[:, 1]).all()


# rhythm


def test_the_day_the_clocks_go_forward_has_23_hours_and_no_two_oclock() -> None:
    calendar = Calendar(SynthesisConfig(days=1, first_day=date(2024, 3, 10)))
    assert calendar.end_s - calendar.begin_s == 23 * 3600
    at = [int(datetime(2024, 3, 10, hour, 30, tzinfo=UTC).timestamp()) for hour in (5, 6, 7, 8)]
    assert calendar.slot_of(np.array(at)).tolist() == [24 + 0, 24 + 1, 24 + 3, 24 + 4]


def test_the_day_the_clocks_go_back_has_25_hours_and_one_oclock_twice() -> None:
    calendar = Calendar(SynthesisConfig(days=1, first_day=date(2024, 11, 3)))
    assert calendar.end_s - calendar.begin_s == 25 * 3600
    at = [int(datetime(2024, 11, 3, hour, 30, tzinfo=UTC).timestamp()) for hour in (4, 5, 6, 7)]
    assert calendar.slot_of(np.array(at)).tolist() == [24 + 0, 24 + 1, 24 + 1, 24 + 2]


@given(
    counts=st.lists(st.integers(3, 3_000), min_size=1, max_size=4),
    first_day=st.sampled_from([date(2024, 3, 9), date(2024, 11, 2), date(2024, 6, 1)]),
    days=st.integers(1, 3),
    seed=st.integers(0, 1_000),
)
@settings(max_examples=20, deadline=None)
def test_instants_of_a_person_increase_and_stay_inside_the_days(
    counts: list[int], first_day: date, days: int, seed: int
) -> None:
    calendar = Calendar(SynthesisConfig(days=days, first_day=first_day))
    instants = draw_instants(np.array(counts), calendar, np.random.default_rng(seed))
    assert len(instants) == sum(counts)
    for of_person in np.split(instants, np.cumsum(counts)[:-1]):
        assert (np.diff(of_person) > 0).all()
        assert calendar.begin_s <= of_person[0]
        assert of_person[-1] < calendar.end_s


def test_checkins_come_in_bursts() -> None:
    calendar, people, each = Calendar(SynthesisConfig(days=60)), 100, 30

    def soon(instants: NDArray[np.int64]) -> float:
        return float((np.diff(np.sort(instants.reshape(people, each))) < 3600).mean())

    bursts = draw_instants(np.full(people, each), calendar, np.random.default_rng(1))
    apart = calendar.draw(people * each, np.random.default_rng(1))
    assert soon(bursts) > 4 * soon(apart)


# people


def test_people_live_in_residences_and_work_in_offices_near_them() -> None:
    config = SynthesisConfig(users=800, places=2_000)
    plan = lay_out_city(config, np.random.default_rng(1))
    people = settle_people(plan, config, np.random.default_rng(2))
    assert set(plan.category[people.home].tolist()) == {index_of("Residence")}
    assert set(plan.category[people.work].tolist()) == {index_of("Office")}
    anyone = np.random.default_rng(3).permutation(people.work)

    def commute_km(work: NDArray[np.int64]) -> float:
        return float(np.median(np.hypot(*(plan.xy_km[:, people.home] - plan.xy_km[:, work]))))

    assert commute_km(people.work) < 0.6 * commute_km(anyone)


# visits


def walk_of(diary: list[tuple[int, int]], slot: int) -> Walk:
    """Many people with the same diary of (place, moment), about to make one more visit."""
    crowd = 6_000
    people = People(
        home=np.full(crowd, HOME),
        work=np.full(crowd, WORK),
        taste=np.ones((crowd, len(CATEGORIES)), dtype=np.float32),
        checkins=np.full(crowd, len(diary) + 1),
    )
    slots = np.array([*(moment for _, moment in diary), slot], dtype=np.uint8)
    plan = lay_out_city(SynthesisConfig(places=50), np.random.default_rng(1))
    walk = Walk(plan, people, np.tile(slots, crowd), np.random.default_rng(2))
    for entry, (place, _) in enumerate(diary):
        walk.diaries.place[walk.diaries.begin + ANCHORS + entry] = place
    return walk


def remembered(walk: Walk) -> NDArray[np.int64]:
    begin = walk.diaries.begin
    entry = int(begin[1] - begin[0]) - 1
    return walk.remember(np.arange(len(begin)), begin + entry, entry)


def test_a_return_goes_to_a_place_in_proportion_to_its_visits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("castpoi.checkins.synthetic.walk.HABIT_SHARE", 0.0)
    diary = [(BAKERY, 8)] * 5 + [(BAR, 22)] * 3  # after home and work, which open every diary
    returns = remembered(walk_of(diary, slot=12))
    counts = np.bincount(returns, minlength=4)
    expected = np.array([1, 1, 5, 3]) / 10 * len(returns)
    assert stats.chisquare(counts, expected).pvalue > 0.001


@pytest.mark.parametrize(("slot", "usual", "other"), [(8, BAKERY, BAR), (22, BAR, BAKERY)])
def test_a_habit_returns_to_the_usual_place_of_that_hour(
    slot: int, usual: int, other: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("castpoi.checkins.synthetic.walk.HABIT_SHARE", 1.0)
    diary = [(BAKERY, 8), (BAR, 22)] * 4 + [(PARK, 15)]
    returns = remembered(walk_of(diary, slot=slot))
    assert (returns == usual).mean() > 0.9
    assert (returns == other).mean() < 0.1


def test_a_habit_repeats_an_earlier_move_from_the_present_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("castpoi.checkins.synthetic.walk.HABIT_SHARE", 1.0)
    diary = [(WORK, 12), (BAKERY, 12), (HOME, 12), (BAR, 12)] * 3 + [(WORK, 12)]
    returns = remembered(walk_of(diary, slot=12))
    assert (returns == BAKERY).mean() > 0.75  # 3 of 15 remembered visits are such steps
    assert (returns == WORK).mean() < 0.01  # where one is already


def test_the_probability_of_exploring_is_rho_times_known_places_to_minus_gamma() -> None:
    expected = [0.68, 0.68 * 4**-0.21, 0.68 * 9**-0.21]
    assert exploration_probability(np.array([1, 4, 9])) == pytest.approx(expected)


def test_categories_appeal_at_their_peaks() -> None:
    appeal = appeal_by_slot()
    assert appeal[:24, index_of("Lunch Counter")].argmax() == 12
    assert appeal[:24, index_of("Gym")].argmax() in (6, 17, 18)
    assert appeal[24 + 14, index_of("Museum")] > 2 * appeal[14, index_of("Museum")]
    assert sum(category.share for category in CATEGORIES) == pytest.approx(1.0)
