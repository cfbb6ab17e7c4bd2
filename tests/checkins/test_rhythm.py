"""The rhythm check: plausible local hours, and the shift that corrects a wrong clock."""

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from castpoi.checkins.prepare import Preparation, make_city
from castpoi.checkins.rhythm import MIN_CHECKINS, Rhythm, rhythm_of
from castpoi.core.errors import WrongClock
from tests.messages import refused
from tests.sources import table

# check-ins an hour in true local time: quiet at 03:00, busiest in the evening
HUMAN_CURVE = np.array(
    [20, 12, 7, 4, 6, 12, 25, 40, 55, 60, 60, 65, 80, 75, 65, 62, 65, 75, 90, 95, 90, 80, 60, 35]
)


def curve(counts: np.ndarray) -> Rhythm:
    hours = np.repeat(np.arange(24), counts)
    return rhythm_of(hours * 3_600_000_000 + 1_333_324_800_000_000)


def test_a_human_curve_is_quiet_at_three_and_busy_by_day() -> None:
    rhythm = curve(HUMAN_CURVE)
    assert (rhythm.trough_hour, rhythm.correction_hours) == (3, 0)
    assert rhythm.is_human
    assert rhythm.day_night_ratio == pytest.approx(
        HUMAN_CURVE[8:22].mean() / HUMAN_CURVE[1:6].mean()
    )
    assert rhythm.sentence == (
        "the quietest local hour is 03:00 and days are 8.9 times as busy as nights"
    )


@pytest.mark.parametrize("shift", range(-11, 13))
def test_a_shifted_curve_gets_the_shift_that_corrects_it(shift: int) -> None:
    rhythm = curve(np.roll(HUMAN_CURVE, shift))
    assert rhythm.correction_hours == (12 if shift == 12 else -shift)
    if not rhythm.is_human:
        assert rhythm.sentence.endswith(
            f"a shift of {rhythm.correction_hours:+d} hours would fix it"
        )
    assert rhythm.is_human == (1 <= rhythm.trough_hour < 7 and rhythm.day_night_ratio >= 1.5)
    if abs(shift) > 4:
        assert not rhythm.is_human


def test_too_few_check_ins_are_not_judged() -> None:
    rhythm = rhythm_of(np.zeros(MIN_CHECKINS - 1, dtype=np.int64))
    assert not rhythm.is_judged
    assert rhythm.sentence == "499 check-ins are too few to check the clock"
    assert rhythm_of(np.zeros(MIN_CHECKINS, dtype=np.int64)).is_judged


def clock_table(hours_late: int) -> str:
    """800 check-ins by day, 20 by night in New York, on a clock that is some hours late."""
    rng = np.random.default_rng(0)
    hours = np.r_[rng.integers(8, 23, 800), rng.integers(0, 6, 20)] + 4 - hours_late
    days = rng.integers(0, 60, 820)
    seconds = 1_338_508_800 + days * 86_400 + hours * 3_600  # from 1 June 2012
    return table(
        [str(row % 9), f"p{row % 7}", "40.7", "-74.0", str(second)]
        for row, second in enumerate(seconds)
    )


def test_a_wrong_clock_is_refused_with_the_shift_that_corrects_it(tmp_path: Path) -> None:
    source = tmp_path / "v.csv"
    source.write_text(clock_table(hours_late=9))
    with refused(WrongClock) as caught:
        make_city([source], Preparation())
    shift = float(str(caught.value).split("--clock-shift ")[1].split(",")[0])
    corrected = make_city([source], Preparation(clock_shift_hours=shift))
    assert corrected.manifest["rhythm"]["is_human"] is True
    accepted = make_city([source], Preparation(accept_rhythm=True))
    assert accepted.manifest["rhythm"]["is_human"] is False
    # a shift that is not enough is corrected as a whole
    with pytest.raises(WrongClock, match=rf"--clock-shift \+{shift:g},"):
        make_city([source], Preparation(clock_shift_hours=-2))


@pytest.mark.parametrize("hour", [0, 19])
def test_times_that_are_dates_are_refused_without_a_shift(hour: int) -> None:
    instants = pl.datetime_range(
        datetime(2012, 1, 1, hour, tzinfo=UTC),
        datetime(2013, 12, 31, hour, tzinfo=UTC),
        "1d",
        eager=True,
    )
    places = pl.int_range(len(instants), eager=True) % 50
    frame = pl.DataFrame(
        {"user": places % 7, "place": places, "lat": 40.7, "lon": -74.0, "time": instants}
    )
    with refused(WrongClock):
        make_city([frame], Preparation())


def test_no_shift_is_proposed_for_a_city_without_nights(tmp_path: Path) -> None:
    source = tmp_path / "v.csv"
    # as busy by night as by day but for a short dip at 03:00
    hours = [hour for hour in range(24) for _ in range(20 if hour in (2, 3, 4) else 30)]
    rows = [
        [str(n % 5), f"p{n % 9}", "51.5", "-0.1", f"2012-01-{1 + n % 28:02}T{hour:02}:00:00Z"]
        for n, hour in enumerate(hours)
    ]
    source.write_text(table(rows))
    with refused(WrongClock):
        make_city([source], Preparation())
