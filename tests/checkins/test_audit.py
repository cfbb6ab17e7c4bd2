"""The audit finds what was broken on purpose, and nothing else."""

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

from castpoi.checkins import record
from castpoi.checkins.audit import CHECKS, Outcome, audit
from castpoi.checkins.city import City, fingerprint_of
from tests.cities import CAFE, OFFICE, PARK, STATION, THEATRE, small_city

VISITS = [
    (1, CAFE, "2024-01-01 13:00"),
    (1, OFFICE, "2024-01-01 14:00"),
    (1, CAFE, "2024-01-02 13:00"),
    (1, OFFICE, "2024-01-02 14:00"),
    (2, OFFICE, "2024-01-01 15:00"),
    (2, PARK, "2024-01-01 20:00"),
    (2, CAFE, "2024-01-02 13:00"),
    (2, PARK, "2024-01-02 20:00"),
]
PARTS = ["train", "train", "validation", "test"] * 2


def found(city: City, check: str) -> Outcome:
    return next(finding for finding in audit(city) if finding.check == check)


def resealed(city: City, checkins: pl.DataFrame) -> City:
    """The city with other check-ins and a fingerprint that fits them."""
    changed = replace(city, checkins=checkins)
    seal = fingerprint_of(changed.checkins, changed.users, changed.places, changed.split)
    return replace(changed, manifest={**city.manifest, "fingerprint": seal})


@pytest.fixture
def city() -> City:
    plain = small_city(VISITS, PARTS)
    # New York in January, which is what the zones of the places say
    winter = plain.checkins.with_columns(pl.lit(-300, dtype=pl.Int16).alias(record.OFFSET))
    return replace(plain, checkins=winter)


def test_a_sound_city_fails_no_check(city: City) -> None:
    findings = audit(city)
    assert [finding.check for finding in findings] == list(CHECKS)
    assert not [finding for finding in findings if finding.status == "failed"]


def test_a_changed_city_no_longer_fits_its_fingerprint(city: City) -> None:
    moved = city.places.with_columns(pl.col(record.LAT) + 0.001)
    finding = found(replace(city, places=moved), "fingerprint")
    assert finding.status == "failed"
    assert "prepare the city again" in finding.finding


def test_row_numbers_that_do_not_count_from_0_are_found(city: City) -> None:
    swapped = city.checkins.with_columns(pl.col(record.CHECKIN).reverse())
    finding = found(replace(city, checkins=swapped), "fingerprint")
    assert finding.status == "failed"
    assert finding.finding == (
        "column 'checkin' of checkins.parquet does not count its rows 0, 1, 2, ...; prepare the "
        "city again"
    )


def test_a_file_that_has_changed_is_found(city: City) -> None:
    finding = found(replace(city, file_faults=("places.parquet is other",)), "fingerprint")
    assert finding == Outcome(
        "fingerprint", "failed", "places.parquet is other; prepare the city again"
    )


def test_a_trajectory_that_runs_backwards_is_found(city: City) -> None:
    order = [1, 0, *range(2, len(VISITS))]
    finding = found(resealed(city, city.checkins[order]), "time order")
    assert finding.status == "failed"
    assert "1 check-ins come before an earlier one" in finding.finding


def test_a_target_that_repeats_its_own_history_at_the_same_instant_is_found() -> None:
    visits = [
        (1, CAFE, "2024-01-01 13:00"),
        (1, OFFICE, "2024-01-01 14:00"),
        (1, OFFICE, "2024-01-01 14:00"),
    ]
    city = small_city(visits, ["train", "train", "test"])
    finding = found(city, "target in its own past")
    assert finding.status == "failed"
    assert "prepare without --keep-duplicates" in finding.finding


def test_the_same_place_an_hour_earlier_is_a_revisit_and_no_leak() -> None:
    visits = [
        (1, CAFE, "2024-01-01 13:00"),
        (1, OFFICE, "2024-01-01 13:00"),
        (1, OFFICE, "2024-01-01 14:00"),
    ]
    city = small_city(visits, ["train", "train", "test"])
    assert found(city, "target in its own past").status == "passed"


def test_a_target_at_a_place_that_train_does_not_know_is_found() -> None:
    visits = [*VISITS[:3], (1, THEATRE, "2024-01-02 14:00")]
    city = small_city(visits, ["train", "train", "validation", "test"])
    finding = found(city, "unseen users or places")
    assert finding.status == "failed"
    assert "1 a place that is not in train" in finding.finding


def test_a_stranger_at_the_same_place_and_instant_is_no_leak_but_unknown_to_train() -> None:
    city = small_city([*VISITS[:2], (2, *VISITS[1][1:])], ["train", "train", "test"])
    assert found(city, "target in its own past").status == "passed"
    finding = found(city, "unseen users or places")
    assert finding.status == "failed"
    assert finding.finding.startswith("1 targets have a user and 0 a place")


def test_a_user_whose_test_comes_before_train_is_found() -> None:
    city = small_city(VISITS, ["test", "train", "train", "validation", *PARTS[4:]])
    finding = found(city, "split overlap")
    assert finding.status == "failed"
    assert "later part before an earlier one" in finding.finding


def test_two_test_targets_of_one_user_are_found() -> None:
    city = small_city(VISITS, ["train", "train", "test", "test", *PARTS[4:]])
    assert "two test targets" in found(city, "split overlap").finding


def test_a_split_that_names_a_check_in_twice_is_found(city: City) -> None:
    twice = city.split.with_columns(pl.lit(0, dtype=pl.UInt32).alias(record.CHECKIN))
    assert "exactly once" in found(replace(city, split=twice), "split overlap").finding


def test_parts_of_a_chronological_split_follow_one_another_in_time(city: City) -> None:
    chronological = {**city.manifest, "split": "chronological"}
    assert found(replace(city, manifest=chronological), "split overlap").status == "passed"
    early = small_city(VISITS, [*PARTS[:4], "test", *PARTS[5:7], "test"])
    at_once = small_city([VISITS[0], (2, *VISITS[0][1:])], ["train", "test"])
    for wrong in (early, at_once):
        finding = found(replace(wrong, manifest=chronological), "split overlap")
        assert finding.status == "failed"
        assert "begins before the previous one" in finding.finding


def test_an_offset_that_is_not_the_zones_is_found(city: City) -> None:
    summer = city.checkins.with_columns(pl.lit(-240, dtype=pl.Int16).alias(record.OFFSET))
    finding = found(replace(city, checkins=summer), "local clock")
    assert finding.status == "failed"
    assert "8 local offsets differ" in finding.finding


def test_a_place_without_a_zone_fails_the_check_of_the_clock_alone(city: City) -> None:
    unzoned = city.places.with_columns(pl.lit(None, dtype=pl.String).alias(record.ZONE))
    failed = [each for each in audit(replace(city, places=unzoned)) if each.status == "failed"]
    assert [each.check for each in failed] == ["local clock"]
    assert "the tables do not fit together" in failed[0].finding


def test_a_move_faster_than_an_airliner_is_counted() -> None:
    at_once = [(1, place, "2024-01-01 13:00") for place in (CAFE, OFFICE, THEATRE)]  # 0.4, 12 km
    city = small_city([*at_once, *VISITS[2:4]], ["train"] * 3 + ["validation", "left out"])
    finding = found(city, "teleports")
    assert finding.status == "warned"
    assert finding.finding.startswith("1 of 3 moves")


def test_a_place_with_most_check_ins_is_worth_a_warning() -> None:
    visits = [(user, STATION, f"2024-01-0{user} 1{hour}:00") for user in (1, 2) for hour in (2, 3)]
    city = small_city(visits, ["train"] * 4)
    finding = found(city, "popularity skew")
    assert finding.status == "warned"
    assert finding.finding.startswith("the busiest place has 100.0% of all check-ins")


def test_a_split_without_test_targets_fails(city: City) -> None:
    nothing = small_city(VISITS, ["train"] * len(VISITS))
    assert found(nothing, "share of revisits").status == "failed"


def busy_city(hours: list[int], manifest: dict[str, Any]) -> City:
    """One user, many check-ins at these local hours (New York in winter)."""
    rng = np.random.default_rng(5)
    days = np.arange(600) // 2
    picked = rng.choice(hours, size=600)
    at = np.sort(days * 86_400 + picked * 3_600 + 5 * 3_600 + 1_704_067_200) * 1_000_000
    plain = small_city([(1, CAFE, "2024-01-01 13:00")] * 600, ["train"] * 600)
    instants = pl.Series(at).cast(record.INSTANT)
    checkins = plain.checkins.with_columns(
        instants.alias(record.AT_UTC), pl.lit(-300, dtype=pl.Int16).alias(record.OFFSET)
    )
    return replace(plain, checkins=checkins, manifest={**plain.manifest, **manifest})


def test_a_city_that_lives_by_night_fails_unless_its_clock_was_accepted() -> None:
    by_night = list(range(6))
    assert found(busy_city(by_night, {}), "rhythm").status == "failed"
    accepted = {"options": {"accept_rhythm": True}}
    assert found(busy_city(by_night, accepted), "rhythm").status == "warned"
    by_day = list(range(8, 22))
    assert found(busy_city(by_day, {}), "rhythm").status == "passed"
