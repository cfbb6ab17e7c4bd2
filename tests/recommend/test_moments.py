from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from castpoi.core.errors import BadInput
from castpoi.recommend.request import Moment, instant_us, local_datetime, moment_of
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
def test_a_time_with_an_offset_is_an_instant(written: str | datetime) -> None:
    assert moment_of(written, what="at") == Moment(NOON_US, is_naive=False)
    assert instant_us(written, what="at") == NOON_US


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


def test_an_instant_is_shown_in_the_local_time_of_its_place() -> None:
    assert local_datetime(NOON_US, -240).isoformat() == "2012-04-03T12:00:00-04:00"
