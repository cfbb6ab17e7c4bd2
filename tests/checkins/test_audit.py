"""The audit finds the faults of a city, and reports no others."""

from collections.abc import Callable
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
    # New York in January, as in the zones of the places
    winter = plain.checkins.with_columns(pl.lit(-300, dtype=pl.Int16).alias(record.OFFSET))
    return replace(plain, checkins=winter)


def test_a_correct_city_fails_no_check(city: City) -> None:
    findings = audit(city)
    assert [finding.check for finding in findings] == list(CHECKS)
    assert not [finding for finding in findings if finding.status == "failed"]


def shifted(city: City, table: str, change: pl.Expr) -> City:
    """The city with one column of a table changed."""
    return replace(city, **{table: getattr(city, table).with_columns(change)})


def test_the_share_of_the_crowds_future_is_a_warning(city: City) -> None:
    # Train, UTC: 13:00, 14:00, 15:00 and 20:00 of the first day; both test targets are a day later.
    assert found(city, "training on later check-ins").status == "passed"
    early = [
        *VISITS[:4],
        *((user, place, f"2024-01-02 {at[-5:]}") for user, place, at in VISITS[4:]),
    ]
    early[4:6] = [(2, OFFICE, "2024-01-02 10:00"), (2, PARK, "2024-01-02 14:30")]
    early[6:] = [(2, CAFE, "2024-01-03 13:00"), (2, PARK, "2024-01-03 20:00")]
    # One of four train check-ins is later than the target at 14:00, none later than the other one.
    warning = found(small_city(early, PARTS), "training on later check-ins")
    assert warning.status == "warned"
    assert "on average 12.5% of the train check-ins are later than a test target" in warning.finding
    assert "within a user" in found(city, "split overlap").finding


SAME_INSTANT = [VISITS[0], VISITS[1], VISITS[1]]
AT_A_NEW_PLACE = [*VISITS[:3], (1, THEATRE, "2024-01-02 14:00")]
OF_A_NEW_USER = [*VISITS[:2], (2, *VISITS[1][1:])]

FAULTS: dict[str, tuple[Callable[[City], City], str, str]] = {
    # case: (how to break the city, the check that fails, the beginning of its finding)
    "changed content": (
        lambda c: shifted(c, "places", pl.col(record.LAT) + 0.001),
        "fingerprint",
        "its manifest has fingerprint",
    ),
    "wrong row numbers": (
        lambda c: shifted(c, "checkins", pl.col(record.CHECKIN).reverse()),
        "fingerprint",
        "column 'checkin' of checkins.parquet does not count its rows 0, 1, 2, ...; prepare",
    ),
    "a changed file": (
        lambda c: replace(c, file_faults=("places.parquet is other",)),
        "fingerprint",
        "places.parquet is other; prepare the city again",
    ),
    "a trajectory out of order": (
        lambda c: resealed(c, c.checkins[[1, 0, *range(2, len(VISITS))]]),
        "time order",
        "1 check-ins come before an earlier one",
    ),
    "a target that repeats its history at the same instant": (
        lambda _: small_city(SAME_INSTANT, ["train", "train", "test"]),
        "target in its own history",
        "1 test targets repeat a check-in of their history at the same instant; prepare without",
    ),
    "a target at a place that is not in train": (
        lambda _: small_city(AT_A_NEW_PLACE, ["train", "train", "validation", "test"]),
        "unseen users or places",
        "0 targets have a user and 1 a place that is not in train",
    ),
    "a target of a user who is not in train": (
        lambda _: small_city(OF_A_NEW_USER, ["train", "train", "test"]),
        "unseen users or places",
        "1 targets have a user and 0 a place",
    ),
    "a test target before train": (
        lambda _: small_city(VISITS, ["test", "train", "train", "validation", *PARTS[4:]]),
        "split overlap",
        "1 users have a later part before an earlier one",
    ),
    "two test targets of one user": (
        lambda _: small_city(VISITS, ["train", "train", "test", "test", *PARTS[4:]]),
        "split overlap",
        "a user has two test targets",
    ),
    "a check-in twice in the split": (
        lambda c: shifted(c, "split", pl.lit(0, dtype=pl.UInt32).alias(record.CHECKIN)),
        "split overlap",
        "the split does not contain every check-in exactly once",
    ),
    "an offset of another zone": (
        lambda c: shifted(c, "checkins", pl.lit(-240, dtype=pl.Int16).alias(record.OFFSET)),
        "local clock",
        "8 local offsets differ from the zone of their place",
    ),
    "no test target": (
        lambda _: small_city(VISITS, ["train"] * len(VISITS)),
        "share of revisits",
        "there is no test target",
    ),
}


@pytest.mark.parametrize(("breaks", "check", "words"), FAULTS.values(), ids=FAULTS.keys())
def test_a_fault_fails_its_check(
    city: City, breaks: Callable[[City], City], check: str, words: str
) -> None:
    outcome = found(breaks(city), check)
    assert outcome.status == "failed"
    assert outcome.finding.startswith(words)


@pytest.mark.parametrize(
    "visits", [[VISITS[0], (1, OFFICE, VISITS[0][2]), VISITS[1]], OF_A_NEW_USER]
)
def test_the_same_place_at_another_instant_or_of_another_user_is_no_leak(
    visits: list[tuple[int, int, str]],
) -> None:
    city = small_city(visits, ["train", "train", "test"])
    assert found(city, "target in its own history").status == "passed"


def test_parts_of_a_chronological_split_follow_one_another_in_time(city: City) -> None:
    chronological = {**city.manifest, "split": "chronological"}
    assert found(replace(city, manifest=chronological), "split overlap").status == "passed"
    early = small_city(VISITS, [*PARTS[:4], "test", *PARTS[5:7], "test"])
    at_once = small_city([VISITS[0], (2, *VISITS[0][1:])], ["train", "test"])
    for wrong in (early, at_once):
        finding = found(replace(wrong, manifest=chronological), "split overlap")
        assert finding.status == "failed"
        assert "begins before the previous one" in finding.finding


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


def test_a_place_with_most_check_ins_gets_a_warning() -> None:
    visits = [(user, STATION, f"2024-01-0{user} 1{hour}:00") for user in (1, 2) for hour in (2, 3)]
    city = small_city(visits, ["train"] * 4)
    finding = found(city, "popularity skew")
    assert finding.status == "warned"
    assert finding.finding.startswith("the busiest place has 100.0% of all check-ins")


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


def test_check_ins_by_night_alone_fail_unless_the_clock_was_accepted() -> None:
    by_night = list(range(6))
    assert found(busy_city(by_night, {}), "rhythm").status == "failed"
    accepted = {"options": {"accept_rhythm": True}}
    assert found(busy_city(by_night, accepted), "rhythm").status == "warned"
    by_day = list(range(8, 22))
    assert found(busy_city(by_day, {}), "rhythm").status == "passed"
