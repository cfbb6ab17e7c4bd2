"""Zones from coordinates, without a network."""

import zoneinfo

import numpy as np
import pytest

from castpoi.geo.zones import boundaries_version, is_land, zones_of


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


def test_zones_come_in_the_order_of_the_points() -> None:
    zones = zones_of(np.array([35.69, 40.72]), np.array([139.77, -74.0]))
    assert zones == ["Asia/Tokyo", "America/New_York"]


def test_the_open_sea_has_a_nautical_zone_that_is_no_land() -> None:
    (zone,) = zones_of(np.array([30.0]), np.array([-45.0]))
    assert zone.startswith("Etc/GMT")
    assert zone in zoneinfo.available_timezones()
    assert not is_land(zone)
    assert is_land("America/New_York")
    assert not is_land("Antarctica/Vostok")


def test_the_boundaries_have_a_version_for_the_manifest() -> None:
    assert boundaries_version()[:4].isdigit()
