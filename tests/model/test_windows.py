import math

import numpy as np
import pytest
import torch

from castpoi.core.errors import BadInput
from castpoi.model.layers import Dropout, fill, has_float64
from castpoi.model.places import NO_PLACE
from castpoi.model.windows import HistoryBatch
from tests.model.small import at, batch_of, small_config, trained_model, walk

CONFIG = small_config("paper")
HOUR_US = 3_600_000_000


def counted(batch: HistoryBatch, history: int, place: int) -> list[float]:
    """The revisit features of a place, zeros if the place is not known."""
    pairs = batch.known
    found = pairs.features[(pairs.owner == history) & (pairs.place == place)]
    return [0.0, 0.0, 0.0] if not len(found) else [round(value, 6) for value in found[0].tolist()]


def test_a_window_holds_the_last_visits_only() -> None:
    visits = [(place % 7, place, 0) for place in range(20)]
    assert batch_of(CONFIG, visits).windows.place.tolist() == [[16 % 7, 17 % 7, 18 % 7, 19 % 7]]


def test_empty_histories_have_one_empty_slot() -> None:
    batch = batch_of(CONFIG, [], [])
    assert batch.windows.place.tolist() == [[NO_PLACE], [NO_PLACE]]
    assert not batch.windows.is_real.any()
    assert len(batch.known.owner) == 0


def test_the_clock_is_local_and_the_week_begins_on_monday() -> None:
    # 02:30 UTC on Monday is 22:30 on Sunday in New York's summer
    windows = batch_of(CONFIG, [(0, at("2012-04-09 02:30"), -240)]).windows
    assert windows.local_hour.tolist() == [[22.5]]
    assert windows.weekday.tolist() == [[6]]


def test_the_last_microsecond_of_a_day_is_still_evening() -> None:
    windows = batch_of(CONFIG, [(0, at("2012-04-09 00:00") - 1, 0)]).windows
    assert 23.99 < windows.local_hour.item() < 24
    assert windows.weekday.tolist() == [[6]]
    trained_model(CONFIG).states(windows)  # there is no fifth part of the day


def test_the_first_visit_of_a_history_has_not_moved() -> None:
    windows = batch_of(CONFIG, [(6, 0, 0)], [(0, 0, 0)]).windows
    assert windows.move_km.tolist() == [[0.0], [0.0]]
    assert windows.move_degrees.abs().sum() == 0


def test_the_first_visit_of_a_cut_window_has_moved() -> None:
    visits = [(0, 0, 0), (6, 1, 0), (6, 2, 0), (6, 3, 0), (6, 4, 0)]
    move_km = batch_of(CONFIG, visits).windows.move_km[0]
    assert move_km[0] > 200  # New York to Boston
    assert move_km[1:].tolist() == [0.0, 0.0, 0.0]


def test_a_move_has_a_length_a_bucket_and_a_direction() -> None:
    windows = batch_of(CONFIG, [(0, 0, 0), (2, 1, 0)]).windows
    assert windows.move_km[0, 1].item() == pytest.approx(math.radians(0.01) * 6371, rel=1e-5)
    assert windows.move_bucket[0, 1] == 3  # between 1 and 2 km
    np.testing.assert_allclose(windows.move_degrees[0, 1], [0.01, 0.0], atol=1e-6)


def test_age_is_counted_back_from_the_last_visit() -> None:
    windows = batch_of(CONFIG, [(0, 0, 0), (1, HOUR_US, 0), (2, 4 * HOUR_US, 0)], []).windows
    assert windows.age_us.tolist() == [[4 * HOUR_US, 3 * HOUR_US, 0], [0, 0, 0]]


def test_revisits_are_visits_recency_and_presence() -> None:
    batch = batch_of(CONFIG, [(5, 0, 0), (2, 1, 0), (5, 2, 0), (1, 3, 0)], [(2, 0, 0)])
    assert counted(batch, 0, 5) == [round(math.log(3), 6), round(511 / 512, 6), 1.0]
    assert counted(batch, 0, 1) == [round(math.log(2), 6), 1.0, 1.0]
    assert counted(batch, 1, 2) == [round(math.log(2), 6), 1.0, 1.0]
    assert counted(batch, 1, 5) == [0.0, 0.0, 0.0]


def test_revisits_are_counted_over_the_last_512_visits_only() -> None:
    visits = [(6, 0, 0), (4, 1, 0), *[(0, 2 + i, 0) for i in range(511)]]
    batch = batch_of(CONFIG, visits)
    assert counted(batch, 0, 6) == [0.0, 0.0, 0.0]
    assert counted(batch, 0, 4) == [round(math.log(2), 6), round(1 / 512, 6), 1.0]


def test_windows_split_into_parts_that_make_the_whole() -> None:
    windows = batch_of(CONFIG, *[walk(count, seed=count) for count in range(5)]).windows
    parts = list(windows.split(2))
    assert [len(part) for part in parts] == [2, 2, 1]
    assert torch.equal(torch.cat([part.age_us for part in parts]), windows.age_us)


@pytest.mark.parametrize("place", [-1, 7])
def test_a_place_of_another_city_is_refused(place: int) -> None:
    words = f"a history visits place {place}, but the model has places 0 to 6"
    with pytest.raises(BadInput, match=words):
        batch_of(CONFIG, [(place, 0, 0)])


RATE = 51 / 256


def test_dropout_drops_a_fifth_of_the_values_and_keeps_the_mean() -> None:
    torch.manual_seed(0)
    kept = Dropout(0.2)(torch.ones(1000, 200))
    assert float((kept == 0).float().mean()) == pytest.approx(RATE, abs=0.003)
    assert float(kept.mean()) == pytest.approx(1, abs=0.003)


def test_each_of_eight_values_that_share_a_draw_is_dropped_equally_often() -> None:
    torch.manual_seed(0)
    dropped = Dropout(0.2)(torch.ones(20_000, 8)) == 0
    assert dropped.float().mean(dim=0).tolist() == pytest.approx([RATE] * 8, abs=0.015)


def test_values_that_share_a_draw_are_dropped_independently() -> None:
    torch.manual_seed(0)
    dropped = (Dropout(0.5)(torch.ones(20_000, 8)) == 0).float()
    together = torch.corrcoef(dropped.mT) - torch.eye(8)
    assert float(together.abs().max()) < 0.03


def test_one_seed_drops_the_same_values() -> None:
    torch.manual_seed(3)
    first = Dropout(0.3)(torch.ones(5, 7))
    torch.manual_seed(3)
    assert torch.equal(first, Dropout(0.3)(torch.ones(5, 7)))


def test_nothing_is_dropped_after_training_or_at_rate_zero() -> None:
    values = torch.randn(4, 9)
    assert torch.equal(Dropout(0.5).eval()(values), values)
    assert torch.equal(Dropout(0.0)(values), values)


@pytest.mark.parametrize(("name", "has"), [("cpu", True), ("cuda", True), ("mps", False)])
def test_all_devices_but_apples_have_float64(name: str, has: bool) -> None:
    assert has_float64(torch.device(name)) == has


def test_arrays_fill_the_weights_of_their_names() -> None:
    weights = {"place": torch.zeros(2), "bias": torch.zeros(1)}
    fill(weights, {"bias": np.array([3.0]), "place": np.array([1.0, 2.0])})
    assert weights["place"].tolist() == [1.0, 2.0]
    assert weights["bias"].tolist() == [3.0]


def test_arrays_that_are_no_weights_must_be_named() -> None:
    arrays = {"place": np.ones(2), "lat": np.ones(1)}
    fill({"place": torch.zeros(2)}, arrays, besides=["lat"])
    with pytest.raises(ValueError, match="the model has no weight lat"):
        fill({"place": torch.zeros(2)}, arrays)


def test_a_weight_without_an_array_is_an_error_and_nothing_is_copied() -> None:
    weights = {"place": torch.zeros(2), "bias": torch.zeros(1)}
    with pytest.raises(ValueError, match="it lacks bias; is it of an earlier castpoi"):
        fill(weights, {"place": np.ones(2)})
    assert weights["place"].tolist() == [0.0, 0.0]


def test_an_array_of_another_shape_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"weight place has shape \(3,\), not \(2,\)"):
        fill({"place": torch.zeros(2)}, {"place": np.ones(3)})
