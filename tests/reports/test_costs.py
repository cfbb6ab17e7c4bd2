"""Costs of methods next to their accuracy."""

import json
from pathlib import Path

import pytest

from castpoi.reports.costs import COSTS, cost_table
from castpoi.reports.evidence import Evidence, read_evidence
from castpoi.reports.figures import cost_dots
from tests.reports.result_folders import result_of

NETWORK = {
    "parameters": 4200, "epochs": 12.0, "epoch_s": 8.0, "training_s": 99.0, "peak_gb": 0.5,
    "request_ms": 2.25,
}  # fmt: skip
COUNTED = {"parameters": 0, "epochs": 0, "training_s": 0.03, "peak_gb": 0.1, "request_ms": 1.0}


@pytest.fixture
def measured(tmp_path: Path) -> Evidence:
    result_of([1.0, 2.0], method="castpoi", seed=1).save(tmp_path / "town" / "castpoi-1")
    result_of([2.0, 4.0], method="revisit").save(tmp_path / "town" / "revisit")
    result_of([1.0, 4.0], method="sasrec").save(tmp_path / "town" / "sasrec")
    costs = {"town": {"castpoi": NETWORK, "revisit": COUNTED, "unheard": COUNTED}}
    (tmp_path / COSTS).write_text(json.dumps(costs))
    return read_evidence(tmp_path)


def test_costs_are_next_to_accuracy_and_the_fastest_training_is_first(measured: Evidence) -> None:
    table = cost_table(measured, measured.cities[0])
    assert table is not None
    assert [[cell.text for cell in row] for row in table.groups[0]] == [
        ["Revisit heuristic", "37.50", "100.00", "–", "–", "–", "0.0", "0.10", "1.0"],
        ["CaST-POI", "75.00", "100.00", "4,200", "12.0", "8.0", "99.0", "0.50", "2.2"],
    ]


def test_the_picture_names_a_method_that_no_faster_one_beats(measured: Evidence) -> None:
    chart = cost_dots(measured, measured.cities[0])
    assert chart is not None
    assert "CaST-POI" in chart.inline()
    assert "Revisit heuristic" in chart.inline()


def test_without_measured_costs_there_is_neither_table_nor_picture(measured: Evidence) -> None:
    (measured.folder / COSTS).unlink()
    assert cost_table(measured, measured.cities[0]) is None
    assert cost_dots(measured, measured.cities[0]) is None
