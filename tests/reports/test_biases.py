"""Learned biases: from the manifest of a result into a report."""

from pathlib import Path
from typing import Any

from castpoi.reports.analyses import LearnedBias, biases_of
from castpoi.reports.evidence import RowResult, read_evidence
from tests.reports.result_folders import result_of

EDGES_KM = [0.5, 2.0, 5.0, 20.0, 100.0]


def result_in(folder: Path, **more: Any) -> RowResult:
    result_of([1.0], method="castpoi", seed=1, **more).save(folder / "town" / "ours")
    return read_evidence(folder / "town").results[0]


def test_learned_biases_are_read_from_the_manifest(tmp_path: Path) -> None:
    values = [0.0, 0.25, 0.5, 0.75, 1.0, 1.25]
    learned = {"spatial": {"edges": EDGES_KM, "values": values}}
    biases = biases_of(result_in(tmp_path, learned=learned))
    assert list(biases) == ["spatial"]  # a model without the other bias has none
    assert biases["spatial"].values == values
    assert biases["spatial"].edges == EDGES_KM
    assert biases_of(result_in(tmp_path / "other", run="/gone")) == {}


def test_buckets_are_named_in_a_suitable_unit() -> None:
    spatial = LearnedBias(kind="spatial", edges=(0.5, 2, 100), values=(0,) * 4, is_sloped=False)
    assert spatial.buckets == ["< 0.5 km", "0.5–2 km", "2–100 km", "≥ 100 km"]
    edges = (1, 24, 168, 720)
    temporal = LearnedBias(kind="temporal", edges=edges, values=(0,) * 5, is_sloped=False)
    assert temporal.buckets == ["< 1 h", "1–24 h", "1–7 d", "7–30 d", "≥ 30 d"]
