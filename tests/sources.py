"""One week of three people in three towns, written by hand in every published layout.

The samples follow the published files cell by cell: their columns and the order of them, their
delimiter, encoding, way of writing a time, and their oddities. Reading a sample must give the
visits of `visits_in` back.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

import polars as pl

from castpoi.checkins import record
from castpoi.checkins.city import City

Checkin = tuple[str, str, str]
"""User, place, instant as ISO text in UTC."""


@dataclass(frozen=True)
class Place:
    """A place of a town."""

    id: str
    lat: float
    lon: float
    category: str
    name: str


@dataclass(frozen=True)
class Town:
    """A town with four places; the numbers of a place are its position here."""

    zone: str
    places: tuple[Place, ...]


@dataclass(frozen=True)
class Visit:
    """A user at a place at an instant."""

    user: str
    place: Place
    at: datetime


NEW_YORK: Final = Town(
    "America/New_York",
    (
        Place("49bbd6c0f964a520f4531fe3", 40.71981, -74.002581, "Café", "Joe, Café & Bar"),
        Place("4a43c0aef964a520c6a61fe3", 40.6068, -74.04417, "Bridge", "Verrazzano"),
        Place("4c5cc7b485a1e21e00d35711", 40.716162, -73.88307, "Home (private)", "Home"),
        Place("4bc7086715a7ef3bef9878da", 40.745164, -73.982519, "Medical Center", "Bellevue"),
    ),
)
TOKYO: Final = Town(
    "Asia/Tokyo",
    (
        Place("4b5ab7bff964a520eed128e3", 35.698327, 139.771628, "Hobby Shop", "Yellow"),
        Place("4b55670ff964a52071e327e3", 35.699015, 139.774621, "Electronics Store", "Sofmap"),
        Place("4b243a7df964a520356424e3", 35.690921, 139.700258, "Train Station", "Shinjuku"),
        Place("4b19f917f964a520abe623e3", 35.681382, 139.766084, "Ramen", "ラーメン"),
    ),
)
CALIFORNIA: Final = Town(
    "America/Los_Angeles",
    (
        Place("19542", 37.616356, -122.38615, "Airport", "SFO"),
        Place("14608", 37.782605, -122.407608, "Coffee Shop", "Blue"),
        Place("9410", 34.052235, -118.243683, "City Hall", "LA"),
        Place("420315", 37.807, -122.4211, "Bakery", "Boudin"),
    ),
)

# Position of the place of each visit. Places of the last two visits of a user are known before.
_WALKS: Final = {"12": (0, 1, 0, 2, 1), "470": (1, 2, 3, 0, 2), "979": (3, 0, 1, 3, 0)}


def visits_in(town: Town) -> list[Visit]:
    """Five visits of each of three people, sorted by user and time."""
    return [
        Visit(user, town.places[place], datetime(2012, 4, 3 + day, 18, number, 9, tzinfo=UTC))
        for number, (user, walk) in enumerate(_WALKS.items())
        for day, place in enumerate(walk)
    ]


def checkins_in(city: City) -> list[Checkin]:
    """The check-ins of a city, in canonical order."""
    users, places = city.users[record.USER_ID], city.places[record.PLACE_ID]
    rows = city.checkins.select(record.USER, record.PLACE, record.AT_UTC).iter_rows()
    return [(users[user], places[place], at.isoformat()) for user, place, at in rows]


def checkins_of(visits: Iterable[Visit]) -> list[Checkin]:
    """The check-ins of visits, in canonical order."""
    ordered = sorted(visits, key=lambda visit: (visit.user, visit.at, visit.place.id))
    return [(visit.user, visit.place.id, visit.at.isoformat()) for visit in ordered]


def local_hours_in(city: City) -> list[int]:
    """The local hour of every check-in."""
    minutes = pl.duration(minutes=pl.col(record.OFFSET))
    return city.checkins.select((pl.col(record.AT_UTC) + minutes).dt.hour()).to_series().to_list()


def parts_in(city: City) -> Mapping[str, int]:
    """Number of check-ins in each part."""
    return dict(city.split[record.PART].value_counts().sort(record.PART).iter_rows())


# The generic table


def table_rows(visits: Sequence[Visit]) -> list[list[str]]:
    """Rows for `user, place, lat, lon, time`."""
    return [
        [
            v.user,
            v.place.id,
            str(v.place.lat),
            str(v.place.lon),
            v.at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        ]
        for v in visits
    ]


TABLE_HEADER: Final = ("user", "place", "lat", "lon", "time")


def table(
    rows: Iterable[Sequence[str]], header: Sequence[str] = TABLE_HEADER, by: str = ","
) -> str:
    """A table as text."""
    return "".join(by.join(cells) + "\n" for cells in [header, *rows])


# Foursquare TSMC2014: 8 tab columns, no header, latin-1


def tsmc2014(visits: Iterable[Visit], *, offset_minutes: int) -> bytes:
    """`470<TAB>49bb...<TAB>4bf5...<TAB>Café<TAB>lat<TAB>lon<TAB>-240<TAB>Tue Apr 03 ...`."""
    lines = (
        f"{v.user}\t{v.place.id}\t4bf58dd8d48988d127951735\t{v.place.category}\t{v.place.lat}\t"
        f"{v.place.lon}\t{offset_minutes}\t{v.at.strftime('%a %b %d %H:%M:%S +0000 %Y')}\n"
        for v in visits
    )
    return "".join(lines).encode("latin-1")


# SNAP Gowalla and Brightkite: 5 tab columns, no header


def snap(visits: Iterable[Visit]) -> str:
    """`0<TAB>2010-10-19T23:55:27Z<TAB>30.2359091167<TAB>-97.7951395833<TAB>22847`, newest first."""
    newest_first = sorted(visits, key=lambda v: (int(v.user), -v.at.timestamp()))
    return "".join(
        f"{v.user}\t{v.at.strftime('%Y-%m-%dT%H:%M:%SZ')}\t{v.place.lat}\t{v.place.lon}\t"
        f"{v.place.id}\n"
        for v in newest_first
    )


BRIGHTKITE_BLANKS: Final = (
    "12\t\t\t\t\n470\t2008-04-14T18:04:33Z\t0.0\t0.0\t00000000000000000000000000000000\n"
)
"""What Brightkite writes for a check-in without a place."""


# GETNext: `NYC_train.csv`, `NYC_val.csv`, `NYC_test.csv`

GETNEXT_HEADER: Final = (
    "user_id,POI_id,POI_catid,POI_catid_code,POI_catname,latitude,longitude,timezone,UTC_time,"
    "local_time,day_of_week,norm_in_day_time,trajectory_id,norm_day_shift,norm_relative_time\n"
)


def getnext(rows: Iterable[tuple[Visit, str]], zone: str) -> str:
    """Visits with their trajectory; the category is quoted, for it may hold a comma."""
    text = GETNEXT_HEADER
    for v, trajectory in rows:
        local = v.at.astimezone(ZoneInfo(zone))
        minutes = round((local.utcoffset() or local - local).total_seconds() / 60)
        text += (
            f'{v.user},{v.place.id},4bf58dd8d48988d127951735,0,"{v.place.category}",{v.place.lat},'
            f"{v.place.lon},{minutes},{v.at:%Y-%m-%d %H:%M:%S}+00:00,{local.isoformat(' ')},"
            f"{local.weekday()},0.583441,{trajectory},0,0.583441\n"
        )
    return text


# STHGCN / LLM4POI: `train_sample.csv`, `validate_sample.csv`, `test_sample.csv`

STHGCN_HEADER: Final = (
    "check_ins_id,UTCTimeOffset,UTCTimeOffsetEpoch,pseudo_session_trajectory_id,"
    "query_pseudo_session_trajectory_id,UserId,Latitude,Longitude,PoiId,PoiCategoryId,"
    "PoiCategoryName,last_checkin_epoch_time,SplitTag\n"
)


def sthgcn(
    visits: Iterable[Visit], town: Town, *, is_utc: bool, first_id: int, part: str = "train"
) -> str:
    """Places are numbers from `first_id`; the epoch column holds garbage, for it is wrong."""
    text = STHGCN_HEADER
    zone = UTC if is_utc else ZoneInfo(town.zone)
    for number, v in enumerate(visits):
        text += (
            f"{number},{v.at.astimezone(zone):%Y-%m-%d %H:%M:%S},garbage,{v.user},,{v.user},"
            f"{v.place.lat},{v.place.lon},{town.places.index(v.place) + first_id},7,"
            f"{v.place.category},garbage,{part}\n"
        )
    return text


def write_sthgcn(folder: Path, town: Town, *, is_utc: bool, first_id: int) -> list[Visit]:
    """A triple whose parts are first three, fourth and fifth visits; returns its visits."""
    visits = visits_in(town)
    parts = {
        "train_sample": visits[:0],
        "validate_sample": visits[3::5],
        "test_sample": visits[4::5],
    }
    parts["train_sample"] = [v for day in range(3) for v in visits[day::5]]
    folder.mkdir()
    for stem, rows in parts.items():
        text = sthgcn(rows, town, is_utc=is_utc, first_id=first_id, part=stem.split("_")[0])
        (folder / f"{stem}.csv").write_text(text)
    numbered = {p: Place(str(i + first_id), *_rest(p)) for i, p in enumerate(town.places)}
    return [Visit(v.user, numbered[v.place], v.at) for v in visits]


def _rest(place: Place) -> tuple[float, float, str, str]:
    return place.lat, place.lon, place.category, place.name


# Massive-STEPS

MASSIVE_STEPS_HEADER: Final = (
    "trail_id,user_id,venue_id,latitude,longitude,name,address,venue_category,venue_category_id,"
    "venue_category_id_code,venue_city,venue_city_latitude,venue_city_longitude,venue_country,"
    "timestamp\n"
)


def massive_steps(visits: Iterable[Visit], town: Town) -> str:
    """Every time is local, to the minute in the published files."""
    text = MASSIVE_STEPS_HEADER
    for v in visits:
        wall = v.at.astimezone(ZoneInfo(town.zone))
        text += (
            f"2018_{v.user},{v.user},{v.place.id},{v.place.lat},{v.place.lon},"
            f'"{v.place.name}",,{v.place.category},4bf58dd8d48988d16d941735,3,'
            f"Somewhere,0.5,0.5,XX,{wall:%Y-%m-%d %H:%M:%S}\n"
        )
    return text
