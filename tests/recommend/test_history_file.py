from datetime import UTC, datetime
from pathlib import Path

import pytest

from castpoi.core.errors import BadInput
from castpoi.recommend.history_file import read_history
from castpoi.recommend.request import Visit
from tests.messages import refused

TWO = (Visit("cafe", "2012-04-03T12:00:00-04:00"), Visit("park", "2012-04-03 19:00"))


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
def test_a_history_may_be_a_table_or_json(tmp_path: Path, text: str) -> None:
    (tmp_path / "visits").write_text(text, encoding="utf-8")
    assert read_history(tmp_path / "visits") == TWO


def test_a_column_that_calls_itself_utc_tells_no_wall_clocks(tmp_path: Path) -> None:
    text = "place,UTC_time\ncafe,2012-04-03 16:00:00\npark,2012-04-03T19:00:00-04:00\n"
    (tmp_path / "visits").write_text(text)
    hours = [datetime(2012, 4, 3, hour, tzinfo=UTC) for hour in (16, 23)]
    assert [visit.at for visit in read_history(tmp_path / "visits")] == hours


@pytest.mark.parametrize("text", ["[]", "place,at\n"])
def test_no_visits_are_an_empty_history(tmp_path: Path, text: str) -> None:
    (tmp_path / "visits").write_text(text)
    assert read_history(tmp_path / "visits") == ()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty; give a table with the columns place and at, or JSON"),
        (b" \n", "is empty"),
        (b"[{]", "is not valid JSON: "),
        (b'{"visits": []}', "holds no list of visits; give a table"),
        (b'[{"place": "cafe"}]', 'a visit of the history has place; it must have "place" and "at"'),
        (b"where,at\ncafe,now\n", "has no column for the place; its columns are where, at"),
        (b"place,who\ncafe,me\n", "has no column for the time; its columns are place, who"),
        (b"place,at\ncafe,\n", "row 2: the place or the time is missing; fill it in"),
        (b"place,at\ncafe,now\n,now\n", "row 3: the place or the time is missing"),
        (b"place,at\na,b,c,d\n", "is not a table "),
        (b"\xff\xfe\x00place", "is not UTF-8 text"),
    ],
)
def test_a_file_that_holds_no_history_is_refused(
    tmp_path: Path, content: bytes, words: str
) -> None:
    (tmp_path / "visits").write_bytes(content)
    with pytest.raises(BadInput, match=words):
        read_history(tmp_path / "visits")


def test_the_visits_of_several_people_are_no_history(tmp_path: Path) -> None:
    (tmp_path / "visits").write_text("user,place,time\nann,cafe,now\nbob,park,now\nann,cafe,now\n")
    with refused(BadInput):
        read_history(tmp_path / "visits")


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with refused(BadInput):
        read_history(tmp_path / "visits")
