"""Which column means what: usual names, and names given by hand."""

from pathlib import Path

import pytest

from castpoi.checkins import record
from castpoi.checkins.reading.layouts import USUAL_NAMES, parse_columns, recognise
from castpoi.core.errors import BadInput
from tests.checkins.reading.conftest import PrepareCity
from tests.sources import (
    CALIFORNIA,
    table,
    table_rows,
    triples_in,
    triples_of,
    visits_in,
)

VISITS = visits_in(CALIFORNIA)
ROWS = table_rows(VISITS)


@pytest.mark.parametrize(
    "header",
    [
        ("User ID", "Venue_ID", "Latitude", "Longitude", "Timestamp"),
        ("uid", "poi", "y", "x", "created_at"),
        ("USERID", "location id", "LAT", "LNG", "utc_time"),
        ("person", "business_id", "lat", "long", "date"),
    ],
)
def test_usual_names_of_columns_are_recognised(
    prepared: PrepareCity, tmp_path: Path, header: tuple[str, ...]
) -> None:
    source = tmp_path / "visits.csv"
    source.write_text(table(ROWS, header))
    city, _ = prepared(source)
    assert triples_in(city) == triples_of(VISITS)


def test_unusual_names_are_given_by_hand(prepared: PrepareCity, tmp_path: Path) -> None:
    source = tmp_path / "visits.csv"
    # `user` here is a device and `lat` a rubbish column: what is given by hand goes before them
    header = ("who", "where", "n", "e", "when", "user", "lat", "kind", "label")
    rows = [[*r, "phone", "rubbish", "Shop", f"the {r[1]}"] for r in ROWS]
    source.write_text(table(rows, header))
    given = "user=who,place=where,lat=n,lon=e,time=when,category=kind,name=label"
    city, _ = prepared(source, "--columns", given)
    assert triples_in(city) == triples_of(VISITS)
    assert set(city.places[record.CATEGORY]) == {"Shop"}
    assert "the 19542" in city.places[record.NAME]


def test_the_better_of_two_usual_names_is_taken() -> None:
    meaning = recognise(["local_time", "utc_time", "uid", "poi", "lat", "lon"], {}, where="t.csv")
    assert meaning == {
        "user": "uid",
        "place": "poi",
        "lat": "lat",
        "lon": "lon",
        "time": "utc_time",
    }


def test_a_column_given_for_one_word_is_not_taken_for_another() -> None:
    columns = ["user", "place", "lat", "lon", "time", "name"]
    meaning = recognise(columns, {"category": "name"}, where="t.csv")
    assert meaning["category"] == "name"
    assert "name" not in meaning


def test_given_columns_are_read_as_pairs() -> None:
    assert parse_columns("user=who, place = where") == {"user": "who", "place": "where"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("who=user", "'who' is not one of " + ", ".join(USUAL_NAMES)),
        ("user", "'user' is not of the form word=column"),
        ("user=", "'user=' is not of the form word=column"),
    ],
)
def test_given_columns_that_are_no_pairs_are_refused(text: str, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        parse_columns(text)
