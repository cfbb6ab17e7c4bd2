"""Zones of coordinates, and local time across daylight-saving changes."""

import zoneinfo
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castpoi.core.errors import BadInput
from castpoi.geo.zones import (
    boundaries_version,
    check_zone,
    is_land,
    offsets_minutes,
    to_utc_us,
    zones_of,
)
from tests.messages import refused


@pytest.mark.parametrize(
    ("lat", "lon", "zone"),
    [
        (40.72, -74.0, "America/New_York"),
        (35.69, 139.77, "Asia/Tokyo"),
        (37.62, -122.39, "America/Los_Angeles"),
        (41.88, -87.63, "America/Chicago"),
        (33.45, -112.07, "America/Phoenix"),  # no daylight saving in Arizona
        (28.61, 77.21, "Asia/Kolkata"),
        (-33.87, 151.21, "Australia/Sydney"),
    ],
)
def test_the_zone_of_a_point_is_found(lat: float, lon: float, zone: str) -> None:
    assert zones_of(np.array([lat]), np.array([lon])) == [zone]


def test_the_open_sea_has_a_nautical_zone_that_is_no_land() -> None:
    (zone,) = zones_of(np.array([30.0]), np.array([-45.0]))
    assert zone.startswith("Etc/GMT")
    assert zone in zoneinfo.available_timezones()
    assert not is_land(zone)
    assert is_land("America/New_York")
    assert not is_land("Antarctica/Vostok")


def test_the_boundaries_have_a_version_for_the_manifest() -> None:
    assert boundaries_version()[:4].isdigit()


# Local time


NEW_YORK = "America/New_York"
ZONES = [
    *(NEW_YORK, "America/Los_Angeles", "America/Phoenix", "America/Sao_Paulo", "America/St_Johns"),
    *("Asia/Tokyo", "Asia/Kolkata", "Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Apia"),
    *("Europe/London", "Europe/Istanbul", "Africa/Cairo", "Etc/GMT+3", "UTC"),
]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# times of check-ins: from the first phones with a map to some years from now
instants = st.integers(1_000_000_000, 1_900_000_000)


def us(text: str) -> int:
    """Microseconds of a UTC instant or of a wall clock."""
    return (datetime.fromisoformat(text).replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)


def offset_at(text: str, zone: str) -> int:
    return int(offsets_minutes(np.array([us(text)]), np.zeros(1, dtype=np.int64), [zone])[0])


def instant_of(wall: str, zone: str) -> str:
    found = to_utc_us(np.array([us(wall)]), np.zeros(1, dtype=np.int64), [zone])
    return (EPOCH + timedelta(microseconds=int(found[0]))).strftime("%Y-%m-%d %H:%M")


@pytest.mark.parametrize(
    ("at_utc", "local_hours"),
    [
        ("2012-11-04 05:30", -4),  # 01:30 EDT
        ("2012-11-04 05:59", -4),
        ("2012-11-04 06:00", -5),
        ("2012-11-04 06:30", -5),  # 01:30 EST, an hour later on the same wall clock
        ("2012-03-11 06:59", -5),  # 01:59 EST
        ("2012-03-11 07:00", -4),  # 03:00 EDT
    ],
)
def test_new_york_changes_its_clock_on_the_right_minute(at_utc: str, local_hours: int) -> None:
    assert offset_at(at_utc, NEW_YORK) == local_hours * 60


@pytest.mark.parametrize(
    ("wall", "zone", "at_utc"),
    [
        ("2012-11-04 01:30", NEW_YORK, "2012-11-04 05:30"),  # came twice: the first time
        ("2012-11-04 02:30", NEW_YORK, "2012-11-04 07:30"),
        ("2012-03-11 01:30", NEW_YORK, "2012-03-11 06:30"),
        ("2012-03-11 02:30", NEW_YORK, "2012-03-11 07:30"),  # never was: still EST
        ("2012-03-11 03:30", NEW_YORK, "2012-03-11 07:30"),
        ("2019-10-06 02:10", "Australia/Lord_Howe", "2019-10-05 15:40"),  # only half an hour
        ("2011-12-30 12:00", "Pacific/Apia", "2011-12-30 22:00"),  # a whole day never was
        ("2012-07-07 07:40", "Asia/Tokyo", "2012-07-06 22:40"),
    ],
)
def test_a_local_time_becomes_its_instant(wall: str, zone: str, at_utc: str) -> None:
    assert instant_of(wall, zone) == at_utc


def _zoneinfo_offset(second: int, zone: str) -> int:
    local = datetime.fromtimestamp(second, ZoneInfo(zone))
    return round((local.utcoffset() or timedelta()).total_seconds() / 60)


rows = st.lists(st.tuples(instants, st.integers(0, len(ZONES) - 1)), min_size=1, max_size=30)


@given(rows)
@settings(max_examples=60, deadline=None)
def test_offsets_agree_with_the_standard_library_in_many_zones(rows: list[tuple[int, int]]) -> None:
    at_us = np.array([second for second, _ in rows]) * 1_000_000
    zone = np.array([number for _, number in rows])
    slow = [_zoneinfo_offset(second, ZONES[number]) for second, number in rows]
    assert offsets_minutes(at_us, zone, ZONES).tolist() == slow


@given(st.integers(-370, 10), st.sampled_from([2007, 2012, 2020]), st.sampled_from(ZONES))
@settings(max_examples=60, deadline=None)
def test_offsets_agree_with_the_standard_library_around_changes(
    minutes: int, year: int, zone: str
) -> None:
    rules = ZoneInfo(zone)
    first = int(datetime(year, 1, 1, tzinfo=UTC).timestamp())
    hours = np.arange(0, 366 * 24, 6) * 3600 + first
    local = [datetime.fromtimestamp(int(hour), rules).utcoffset() for hour in hours]
    changes = [
        int(b) for a, b, x, y in zip(hours, hours[1:], local, local[1:], strict=False) if x != y
    ]
    seconds = [change + minutes * 60 for change in changes] or [first]
    found = offsets_minutes(
        np.array(seconds) * 1_000_000, np.zeros(len(seconds), dtype=np.int64), [zone]
    )
    assert found.tolist() == [_zoneinfo_offset(second, zone) for second in seconds]


# A busy city has many check-ins in a quarter of an hour: its offsets are looked up by the quarter.


@given(
    st.sampled_from(
        ["2010-11-07 00:00", "2011-03-13 00:00", "2012-11-04 00:00", "2019-10-05 12:00"]
    ),
    st.lists(st.sampled_from(ZONES), min_size=1, max_size=3, unique=True),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=30, deadline=None)
def test_offsets_of_a_busy_city_agree_with_the_standard_library(
    from_utc: str, zones: list[str], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    second = us(from_utc) // 1_000_000 + rng.integers(0, 8 * 3600, 150)
    zone = rng.integers(0, len(zones), 150)
    slow = [_zoneinfo_offset(int(s), zones[z]) for s, z in zip(second, zone, strict=True)]
    assert offsets_minutes(second * 1_000_000, zone, zones).tolist() == slow


def test_offsets_before_1973_are_those_of_their_time() -> None:
    # Liberia was 44 minutes and 30 seconds behind UTC until 7 January 1972
    assert offset_at("1971-06-01 12:00", "Africa/Monrovia") in (-44, -45)
    assert offset_at("1972-06-01 12:00", "Africa/Monrovia") == 0


@given(rows)
@settings(max_examples=60, deadline=None)
def test_local_times_convert_back_to_their_instants(rows: list[tuple[int, int]]) -> None:
    at_us = np.array([second for second, _ in rows]) * 1_000_000
    zone = np.array([number for _, number in rows])
    wall_us = at_us + offsets_minutes(at_us, zone, ZONES).astype(np.int64) * 60_000_000
    back = to_utc_us(wall_us, zone, ZONES)
    first_time = np.array(
        [
            datetime.fromtimestamp(second, ZoneInfo(ZONES[number])).fold == 0
            for second, number in rows
        ]
    )
    assert (back[first_time] == at_us[first_time]).all()
    assert (back <= at_us).all()  # of an hour that came twice, the first


@given(st.integers(1_000_000_000, 1_900_000_000), st.sampled_from(ZONES))
@settings(max_examples=60, deadline=None)
def test_any_wall_clock_is_read_as_the_standard_library_reads_it(second: int, zone: str) -> None:
    wall = datetime.fromtimestamp(second, UTC).replace(tzinfo=None)
    slow = wall.replace(tzinfo=ZoneInfo(zone)).timestamp()
    found = to_utc_us(np.array([second * 1_000_000]), np.zeros(1, dtype=np.int64), [zone])
    assert found[0] == slow * 1_000_000


def test_a_name_that_is_no_zone_is_refused() -> None:
    check_zone(NEW_YORK, where="--zone")
    with refused(BadInput):
        check_zone("Mars/Olympus", where="--zone")
