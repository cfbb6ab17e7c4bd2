from dataclasses import replace
from pathlib import Path

import pytest

from castpoi.core.errors import BrokenFolder
from castpoi.evaluation.beyond_accuracy import beyond_accuracy, with_top_places
from castpoi.evaluation.evaluate import evaluate
from castpoi.evaluation.result import Result
from tests.contract import odd_city
from tests.evaluation.rankers import fixed
from tests.evaluation.results import result_of
from tests.messages import refused


@pytest.fixture
def office_first() -> Result:
    """Sends everybody to the office; the targets are office, station, station and cafe."""
    return evaluate(fixed(1, 9, 3, 2, 1), odd_city(), method="office", seed=3)


def test_the_distance_error_is_that_of_the_first_place(office_first: Result) -> None:
    # Along the street the office is 0, 3.6, 3.6 and 0.4 km from the targets.
    found = beyond_accuracy(office_first)
    assert found.n == 4
    assert found.median_km_off == pytest.approx(2.0, abs=0.01)
    assert found.mean_km_off == pytest.approx(1.9, abs=0.01)


def test_coverage_counts_every_place_that_stands_in_a_list_once(office_first: Result) -> None:
    found = beyond_accuracy(office_first)
    assert (found.coverage, found.most_coverage) == (1, 1)  # lists of ten hold all five places
    assert found.visited_share == 3 / 5
    wide = replace(office_first, manifest={**office_first.manifest, "places": 100})
    assert beyond_accuracy(wide).coverage == 5 / 100
    assert beyond_accuracy(wide).most_coverage == 4 * 5 / 100


def test_popularity_of_what_is_shown_stands_beside_that_of_what_is_visited(
    office_first: Result,
) -> None:
    # Train: cafe 3, office 2, park 2, station 1, theatre 0.
    found = beyond_accuracy(office_first)
    assert (found.first.mean, found.first.median) == (2, 2)
    assert (found.listed.mean, found.listed.median) == (8 / 5, 2)
    assert (found.visited.mean, found.visited.median) == ((2 + 1 + 1 + 3) / 4, 1.5)


def test_top_places_come_back_from_disk_and_join_by_checkin(
    office_first: Result, tmp_path: Path
) -> None:
    assert office_first.top is not None
    replace(office_first, top=office_first.top.reverse()).save(tmp_path / "result")
    loaded = Result.load(tmp_path / "result")
    assert beyond_accuracy(loaded) == beyond_accuracy(office_first)
    assert with_top_places(loaded).equals(with_top_places(office_first))


def test_results_without_top_places_say_so() -> None:
    with refused(BrokenFolder):
        beyond_accuracy(result_of([1, 2]))


def test_top_places_of_other_targets_are_refused(office_first: Result) -> None:
    assert office_first.top is not None
    fewer = replace(office_first, top=office_first.top.head(3))
    with refused(BrokenFolder):
        beyond_accuracy(fewer)


def test_coverage_needs_the_number_of_places(office_first: Result) -> None:
    manifest = {key: value for key, value in office_first.manifest.items() if key != "places"}
    with refused(BrokenFolder):
        beyond_accuracy(replace(office_first, manifest=manifest))
