"""Requests: times, visits, checks of every field, and files of visits."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from castpoi.core.errors import BadInput
from castpoi.recommend.area import Box, box_of, is_in_box, is_in_polygon, parse_box, polygon_of
from castpoi.recommend.input_files import read_history
from castpoi.recommend.request import (
    Moment,
    Request,
    Visit,
    Visits,
    instant_us,
    moment_of,
)
from tests.cities import CAFE, OFFICE, PARK, STATION, THEATRE
from tests.messages import refused
from tests.serving.small_run import small_book

NOON_US = 1_333_468_800_000_000  # 2012-04-03T16:00:00Z, noon in New York


@pytest.mark.parametrize(
    "written",
    [
        "2012-04-03T16:00:00Z",
        "2012-04-03T12:00:00-04:00",
        " 2012-04-03 12:00:00-04:00 ",
        "Tue Apr 03 16:00:00 +0000 2012",
        "1333468800",
        "1333468800000",
        datetime(2012, 4, 3, 16, tzinfo=UTC),
        datetime(2012, 4, 3, 12, tzinfo=timezone(timedelta(hours=-4))),
    ],
)
def test_a_time_with_an_offset_is_an_instant(written: str | datetime) -> None:
    assert moment_of(written, what="at") == Moment(NOON_US, is_naive=False)
    assert instant_us(written, what="at") == NOON_US


def test_an_epoch_with_the_digits_of_a_date_is_an_epoch() -> None:
    assert moment_of(1_412_120_112_500, what="at").clock_us == 1_412_120_112_500_000
    assert moment_of("1412120112500", what="at").clock_us == 1_412_120_112_500_000


@pytest.mark.parametrize(
    "written",
    ["2012-04-03T16:00:00", "2012-04-03 16:00", datetime(2012, 4, 3, 16)],  # noqa: DTZ001
)
def test_a_time_without_an_offset_is_a_local_time(written: str | datetime) -> None:
    assert moment_of(written, what="at") == Moment(NOON_US, is_naive=True)
    with refused(BadInput):
        instant_us(written, what="at")


@pytest.mark.parametrize(
    "written",
    [
        *("yesterday", "", "2012-04-03", "20120403", "2012-13-03T10:00", None, "x" * 5000),
        *("1902-01-01T00:00:00Z", "2150-01-01T00:00:00Z"),
    ],
)
def test_other_texts_are_rejected(written: Any) -> None:
    with refused(BadInput) as error:
        moment_of(written, what="visit 3")
    assert len(str(error.value)) < 150


NOON = datetime(2012, 4, 3, 16, tzinfo=UTC)
HOUR_US = 3_600_000_000


@pytest.mark.parametrize(
    "visit",
    [
        *(Visit("cafe", NOON), ("cafe", NOON), ["cafe", NOON], {"place": "cafe", "at": NOON}),
        *({"place": "cafe", "time": NOON}, ("cafe", NOON_US), ("cafe", NOON_US // 1_000_000)),
    ],
)
def test_a_visit_may_be_written_in_several_ways(visit: Any) -> None:
    visits = Request.of(history=[visit]).history
    assert visits is not None
    assert list(visits.places) == ["cafe"]
    assert (visits.clock_us.tolist(), visits.is_naive.tolist()) == ([NOON_US], [False])


@pytest.mark.parametrize(
    "request_words",
    [
        {"history": [{"place": "cafe"}]},
        {"history": [{}]},
        {"history": ["cafe"]},
        {"history": [("cafe", NOON, 3)]},
        {"history": [("cafe", NOON), ("park", "soon")]},
        {},
        {"history": (), "user": "user 0"},
        *({"history": (), "k": k} for k in (0, -3, 2.5, True)),
        *({"history": (), "within_km": km} for km in (0, -1.0, float("nan"), float("inf"))),
        {"history": [], "near": [40.7, -74.0, 12.0]},
        {"history": (), "at": "2012-04-03T16:00"},
    ],
    ids=repr,
)
def test_an_invalid_request_is_rejected(request_words: dict[str, Any]) -> None:
    with refused(BadInput):
        Request.of(**request_words)


@pytest.mark.parametrize("near", [(91.25, 0.0), (40.7, -181.25), (float("nan"), 0.0)])
def test_the_error_for_a_wrong_position_has_no_coordinates(near: tuple[float, float]) -> None:
    with refused(BadInput) as error:
        Request.of(history=(), near=near)
    assert ".25" not in str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        "place,at\ncafe,2012-04-03T12:00:00-04:00\npark,2012-04-03 19:00\n",
        "\ufeffVenue ID\tuser\tCheck-in time\n"
        "cafe\tme\t2012-04-03T12:00:00-04:00\npark\tme\t2012-04-03 19:00\n",
        "at;place\n2012-04-03T12:00:00-04:00;cafe\n2012-04-03 19:00;park\n",
        '[{"place": "cafe", "at": "2012-04-03T12:00:00-04:00"}, ["park", "2012-04-03 19:00"]]',
        '{"history": [["cafe", "2012-04-03T12:00:00-04:00"], ["park", "2012-04-03 19:00"]]}',
    ],
)
def test_a_history_file_is_a_table_or_json(tmp_path: Path, text: str) -> None:
    (tmp_path / "visits").write_text(text, encoding="utf-8")
    visits = [Visit("cafe", "2012-04-03T12:00:00-04:00"), Visit("park", "2012-04-03 19:00")]
    found, expected = read_history(tmp_path / "visits"), Visits.of(visits)
    assert [*found.places] == [*expected.places]
    assert found.clock_us.tolist() == expected.clock_us.tolist()
    assert found.is_naive.tolist() == expected.is_naive.tolist()


def test_a_column_with_utc_in_its_name_has_no_local_times(tmp_path: Path) -> None:
    text = "place,UTC_time\ncafe,2012-04-03 16:00:00\npark,2012-04-03T19:00:00-04:00\n"
    (tmp_path / "visits").write_text(text)
    visits = read_history(tmp_path / "visits")
    assert visits.clock_us.tolist() == [NOON_US, NOON_US + 7 * HOUR_US]
    assert not visits.is_naive.any()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b" \n",
        b"[{]",
        b'{"visits": []}',
        b'[{"place": "cafe"}]',
        b"where,at\ncafe,now\n",
        b"place,who\ncafe,me\n",
        b"place,at\ncafe,\n",
        b"place,at\ncafe,now\n,now\n",
        b"place,at\na,b,c,d\n",
        b"\xff\xfe\x00place",
        b"user,place,time\nann,cafe,now\nbob,park,now\nann,cafe,now\n",
        None,
    ],
    ids=repr,
)
def test_a_file_without_a_history_is_rejected(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "visits").write_bytes(content)
    with refused(BadInput):
        read_history(tmp_path / "visits")


@pytest.mark.parametrize("library", [pl.DataFrame, pd.DataFrame, pa.table])
def test_a_history_may_be_a_table_of_any_library(library: Any) -> None:
    visits = Request.of(history=library({"place": [7, 8], "time": [NOON, NOON]})).history
    assert visits is not None
    assert list(visits.places) == ["7", "8"]
    assert visits.clock_us.tolist() == [NOON_US] * 2


def test_ids_may_be_numbers_and_one_category_a_text() -> None:
    request = Request.of(user=470, categories="Food", candidates=[1, 2])
    assert (request.user, request.categories, request.candidates) == ("470", ("Food",), ("1", "2"))


LAT, LON = np.array([0.0, 0.0, 10.0]), np.array([179.0, -179.0, 0.0])


def test_a_box_may_cross_the_date_line() -> None:
    assert is_in_box((-1, 178, 1, -178), LAT, LON).tolist() == [True, True, False]
    assert is_in_box((-1, -180, 1, 178), LAT, LON).tolist() == [False, True, False]


def test_a_polygon_may_cross_the_date_line() -> None:
    around = polygon_of([(-1, 178), (-1, -178.5), (1, -178.5), (1, 178)])
    assert is_in_polygon(around, LAT, LON).tolist() == [True, True, False]


@pytest.mark.parametrize("text", ["1,2,3", "9,0,1,0", "nan,0,1,0", "a,b,c,d"])
def test_a_wrong_box_is_refused(text: str) -> None:
    with refused(BadInput):
        parse_box(text, what="bbox")
    with refused(BadInput):
        box_of([0, 0, 91, 0])


def test_a_polygon_has_three_corners_of_two_degrees() -> None:
    with refused(BadInput):
        polygon_of([(0, 0), (1, 1)])
    with refused(BadInput):
        polygon_of([(0, 0), (1, 1), (91, 0)])


def test_the_error_for_an_unknown_category_suggests_a_similar_one() -> None:
    with refused(BadInput):
        small_book().is_of_category(["Foot"])


def test_the_error_for_an_unknown_category_lists_frequent_ones() -> None:
    words = "no place has the category 'Zzz'; the most frequent are Food, Work, Outdoors, Travel"
    with pytest.raises(BadInput, match=words):
        small_book().is_of_category(["Zzz"])
    without = replace(small_book(), categories=[None] * 5)
    with refused(BadInput):
        without.is_of_category(["Food"])


def test_the_softmax_of_the_log_popularity_is_the_share_of_check_ins_plus_one() -> None:
    book = small_book()
    share = np.exp(book.log_popularity) / np.exp(book.log_popularity).sum()
    np.testing.assert_allclose(share, (book.checkins + 1) / (book.checkins + 1).sum(), rtol=1e-6)
    # the train part of the small city, counted by hand
    assert book.checkins.tolist() == [3, 2, 2, 1, 0]


def test_a_search_finds_names_categories_and_ids_most_visited_first() -> None:
    book = small_book()
    assert book.find(text="CAFÉ") == [CAFE]
    assert book.find(text="work") == [OFFICE]
    assert book.find(text="t", limit=2) == [PARK, STATION]  # outdoors, travel; arts comes third
    assert book.find() == [CAFE, OFFICE, PARK, STATION, THEATRE]


@pytest.mark.parametrize(
    ("box", "found"),
    [
        ((40.70, -74.0, 40.71, -73.9), [CAFE, OFFICE]),
        ((40.80, -75.0, 40.81, -73.0), [THEATRE]),
        ((40.0, 170.0, 41.0, -73.0), [CAFE, OFFICE, PARK, STATION, THEATRE]),  # the long way round
        ((40.0, 170.0, 41.0, -170.0), []),
    ],
)
def test_a_box_contains_the_places_within_it(box: Box, found: list[int]) -> None:
    assert small_book().find(box=box) == found
