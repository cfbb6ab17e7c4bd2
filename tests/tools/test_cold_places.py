"""New places that are left out of training: the targets, and the lists they are ranked in."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from castpoi.checkins.city import City
from castpoi.checkins.prepare import Preparation, prepare
from castpoi.checkins.synthetic import SynthesisConfig, synthesize, write_checkins
from tests.cities import CAFE, OFFICE, PARK, STATION, THEATRE, histories_of, small_city
from tests.training.small import TINY
from tools import cold_places

VISITS = [
    (1, CAFE, "2024-05-06 12:00"),
    (1, OFFICE, "2024-05-06 13:00"),
    (1, PARK, "2024-05-06 14:00"),
    (1, OFFICE, "2024-05-06 15:00"),  # a second visit to a new place
    (2, PARK, "2024-05-07 02:00"),
    (2, OFFICE, "2024-05-07 03:00"),  # a first visit
    (2, STATION, "2024-05-07 04:00"),  # a target that is not new
]
PARTS = ["train", "train", "validation", "test", "train", "validation", "test"]


@pytest.fixture
def opening() -> cold_places.Opening:
    """The small city before its office opened, which then is place 4."""
    is_new = np.array([place == OFFICE for place in (CAFE, OFFICE, PARK, STATION, THEATRE)])
    return cold_places.Opening(city=small_city(VISITS, PARTS), is_new=is_new)


def test_before_it_opened_a_place_and_its_visits_do_not_exist(opening: cold_places.Opening) -> None:
    before = opening.before()
    assert before.places["place_id"].to_list() == ["cafe", "park", "station", "theatre"]
    assert before.places["place"].to_list() == [0, 1, 2, 3]
    assert before.trajectories.place.tolist() == [0, 1, 1, 2]
    assert before.split["part"].to_list() == ["train", "validation", "train", "test"]


def test_targets_are_visits_to_new_places_after_histories_without_them(
    opening: cold_places.Opening,
) -> None:
    targets = opening.targets()
    assert targets.place.tolist() == [4, 4]
    assert targets.is_first.tolist() == [False, True]
    assert targets.histories.place.tolist() == [0, 1, 1]
    assert targets.histories.bounds.tolist() == [0, 2, 3]
    last = targets.part(1, 2)
    assert last.histories.place.tolist() == [1]
    assert last.histories.bounds.tolist() == [0, 1]
    assert last.is_first.tolist() == [True]


def test_the_lists_are_in_order_of_distance_category_and_twin(opening: cold_places.Opening) -> None:
    rivals = cold_places.Rivals(opening)
    after_the_park = histories_of([3, 1])  # theatre, park

    def order(scores: NDArray[np.float32]) -> list[int]:
        return list(map(int, np.argsort(-scores[0])))

    assert order(rivals.nearest(after_the_park)) == [1, 4, 0, 2, 3]
    assert order(rivals.own_categories(after_the_park)) == [1, 3, 4, 0, 2]
    nearest = cold_places.new_only(rivals.nearest(after_the_park), after_the_park)
    assert order(nearest)[:3] == [4, 0, 2]
    model = np.array([[0.5, 0.1, 0.3, 0.2, 9.0]], dtype=np.float32)
    assert order(rivals.twins(model)) == [0, 4, 2, 3, 1]  # the office is like the cafe beside it


def test_each_seed_draws_a_tenth_of_the_places_and_keeps_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = SynthesisConfig(users=12, places=30, days=15)
    checkins = synthesize(config, seed=5)
    source = write_checkins(checkins, tmp_path / "checkins.csv", config=config, seed=5)
    prepare([source], tmp_path / "hamlet", Preparation(accept_rhythm=True))
    out = tmp_path / "cold.json"
    monkeypatch.setattr(cold_places, "SETTINGS", TINY | {"threads": "1", "epochs": "1"})
    for seed in ("1", "2"):
        words = ["c", str(tmp_path / "hamlet"), "--seed", seed, "--out", str(out)]
        monkeypatch.setattr(sys, "argv", words)
        cold_places.main()
    city = City.load(tmp_path / "hamlet")
    found = json.loads(out.read_text())["seeds"]
    assert found.keys() == {"1", "2"}
    for seed, each in found.items():
        opening = cold_places.Opening.drawn(city, int(seed))
        assert each["new_places"] == round(city.places.height / 10) == opening.is_new.sum()
        targets = opening.targets()
        has_visits = targets.histories.lengths > 0
        assert each["all visits"]["targets"] == has_visits.sum() > 0
        assert each["first visits"]["targets"] == (has_visits & targets.is_first).sum()
        assert each["all visits"]["new_only"].keys() == {
            *("castpoi-next", "nearest", "own categories", "twin")
        }


def test_a_file_of_another_city_is_refused(
    opening: cold_places.Opening, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "cold.json"
    out.write_text('{"fingerprint": "f"}')
    opening.city.save(tmp_path / "city")
    monkeypatch.setattr(sys, "argv", ["c", str(tmp_path / "city"), "--out", str(out)])
    with pytest.raises(SystemExit, match="is of another city"):
        cold_places.main()
