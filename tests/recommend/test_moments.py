from datetime import UTC, datetime, timedelta, timezone

import pytest

from castpoi.core.errors import BadInput
from castpoi.recommend.moments import Moment, instant_us, local_datetime, moment_of
from tests.messages import refused

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
def test_a_time_with_its_offset_is_an_instant(written: str | datetime) -> None:
    assert moment_of(written, what="at") == Moment(NOON_US, is_naive=False)
    assert instant_us(written, what="at") == NOON_US


@pytest.mark.parametrize(
    "written",
    ["2012-04-03T16:00:00", "2012-04-03 16:00", datetime(2012, 4, 3, 16)],  # noqa: DTZ001
)
def test_a_time_without_offset_is_a_wall_clock(written: str | datetime) -> None:
    assert moment_of(written, what="at") == Moment(NOON_US, is_naive=True)
    with refused(BadInput):
        instant_us(written, what="at")


@pytest.mark.parametrize("written", ["yesterday", "", "2012-04-03", "20120403", "2012-13-03T10:00"])
def test_what_is_not_a_time_is_refused(written: str) -> None:
    with pytest.raises(BadInput, match=f"visit 3: '{written}' is not a time; write it as 2012-"):
        moment_of(written, what="visit 3")


def test_a_time_that_is_not_even_a_text_is_refused() -> None:
    with refused(BadInput):
        moment_of(None, what="at")  # type: ignore[arg-type]


def test_a_long_text_is_not_repeated_at_length() -> None:
    with refused(BadInput):
        moment_of("x" * 5000, what="at")


@pytest.mark.parametrize("year", [1902, 2150])
def test_a_placeholder_date_is_refused(year: int) -> None:
    with pytest.raises(BadInput, match=f"'{year}-01-01T00:00:00Z' is not between the years 1980"):
        moment_of(f"{year}-01-01T00:00:00Z", what="at")


def test_an_instant_is_shown_on_the_clock_of_its_place() -> None:
    assert local_datetime(NOON_US, -240).isoformat() == "2012-04-03T12:00:00-04:00"
