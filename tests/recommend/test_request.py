from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from castpoi.core.errors import BadInput
from castpoi.recommend.input_files import read_history
from castpoi.recommend.request import Request, Visit, Visits
from tests.messages import refused

NOON = datetime(2012, 4, 3, 16, tzinfo=UTC)
NOON_US = 1_333_468_800_000_000
HOUR_US = 3_600_000_000


@pytest.mark.parametrize(
    "visit", [Visit("cafe", NOON), ("cafe", NOON), ["cafe", NOON], {"place": "cafe", "at": NOON}]
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
        {"history": [], "categories": "Food"},
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
    assert read_history(tmp_path / "visits") == visits


def test_a_column_with_utc_in_its_name_has_no_local_times(tmp_path: Path) -> None:
    text = "place,UTC_time\ncafe,2012-04-03 16:00:00\npark,2012-04-03T19:00:00-04:00\n"
    (tmp_path / "visits").write_text(text)
    visits = Visits.of(read_history(tmp_path / "visits"))
    assert visits.clock_us.tolist() == [NOON_US, NOON_US + 7 * HOUR_US]
    assert not visits.is_naive.any()


@pytest.mark.parametrize("text", ["[]", "place,at\n"])
def test_a_file_without_visits_is_an_empty_history(tmp_path: Path, text: str) -> None:
    (tmp_path / "visits").write_text(text)
    assert read_history(tmp_path / "visits") == []


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
