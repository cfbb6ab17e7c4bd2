import numpy as np

from castpoi.checkins.reading.times import LATEST_US
from castpoi.core.errors import BadInput
from castpoi.recommend.history import end_to_end, history_of
from castpoi.recommend.request import Visit
from tests.cities import CAFE, OFFICE, PARK
from tests.messages import refused
from tests.serving.small_run import small_book

NOON_US = 1_333_468_800_000_000  # 2012-04-03T16:00:00Z


def test_visits_are_sorted_by_time_and_then_by_place() -> None:
    visits = [
        Visit("park", "2012-04-03T16:00:00Z"),
        Visit("office", "2012-04-03T16:00:00Z"),
        Visit("cafe", "2012-04-03T15:00:00Z"),
    ]
    history, skipped = history_of(visits, small_book())
    assert history.place.tolist() == [CAFE, OFFICE, PARK]
    assert history.at_us.tolist() == [NOON_US - 3_600_000_000, NOON_US, NOON_US]
    assert history.offset_minutes.tolist() == [-240] * 3
    assert skipped == 0


def test_a_time_without_offset_is_the_wall_clock_of_the_place() -> None:
    visits = [Visit("cafe", "2012-04-03 12:00"), Visit("cafe", "2012-01-03T12:00:00")]
    history, _ = history_of(visits, small_book())
    # New York is five hours behind UTC in winter and four in summer
    assert history.at_us.tolist()[1] == NOON_US
    assert history.offset_minutes.tolist() == [-300, -240]


def test_visits_to_unknown_places_are_skipped_and_counted() -> None:
    visits = [Visit("moon", "2012-04-03T16:00:00Z"), Visit("cafe", "2012-04-03T16:00:00Z")]
    history, skipped = history_of(visits, small_book())
    assert (history.place.tolist(), skipped) == ([CAFE], 1)


def test_no_visits_are_an_empty_history() -> None:
    history, skipped = history_of([], small_book())
    assert (len(history), skipped) == (0, 0)


def test_a_wrong_time_is_told_with_the_number_of_its_visit() -> None:
    with refused(BadInput):
        history_of([Visit("cafe", "2012-04-03T16:00:00Z"), Visit("park", "soon")], small_book())


def test_a_wall_clock_whose_instant_is_out_of_range_is_told_with_the_number_of_its_visit() -> None:
    visits = [Visit("cafe", "2099-12-31T18:59:59"), Visit("moon", "2099-12-31T18:59:59")]
    history, _ = history_of(visits, small_book())
    assert history.at_us.tolist() == [LATEST_US - 1_000_000]
    late = Visit("cafe", "2099-12-31T19:00:00")  # 2100 has begun in UTC
    with refused(BadInput):
        history_of([*visits, late], small_book())


def test_histories_lie_end_to_end_in_a_batch() -> None:
    one, _ = history_of([Visit("cafe", "2012-04-03T16:00:00Z")], small_book())
    none, _ = history_of([], small_book())
    batch = end_to_end([one, none, one])
    assert batch.bounds.tolist() == [0, 1, 1, 2]
    assert batch.place.tolist() == [CAFE, CAFE]
    assert len(end_to_end([])) == 0


def test_a_history_without_a_visit_keeps_all_others() -> None:
    visits = [Visit(place, f"2012-04-03T1{n}:00:00Z") for n, place in enumerate(["cafe", "park"])]
    history, _ = history_of(visits, small_book())
    assert history.without(0).place.tolist() == [PARK]
    assert history.until(int(history.at_us[0])).place.tolist() == [CAFE]
    np.testing.assert_array_equal(history.place, [CAFE, PARK])
