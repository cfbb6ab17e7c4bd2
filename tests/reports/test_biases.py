"""Learned biases: from the weights of a run into a manifest, and from there into a report."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from castpoi.core.errors import BrokenFolder
from castpoi.reports.biases import LearnedBias, biases_of, read_biases, row_with_biases
from castpoi.reports.evidence import RowResult, read_evidence
from tests.messages import refused
from tests.reports.result_folders import FINGERPRINT, result_of

EDGES_KM = [0.5, 2.0, 5.0, 20.0, 100.0]


def result_in(folder: Path, **more: Any) -> RowResult:
    result_of([1.0], method="castpoi", seed=1, **more).save(folder / "town" / "ours")
    return read_evidence(folder / "town").results[0]


def a_run(folder: Path, **more: Any) -> Path:
    folder.mkdir()
    manifest = {"kind": "run", "method": "castpoi", "seed": 1, "fingerprint": FINGERPRINT}
    (folder / "manifest.json").write_text(json.dumps(manifest | more))
    weights: dict[str, Any] = {
        "refinement.spatial_bias.weight": np.arange(6, dtype=np.float32) / 4,
        "place.weight": np.zeros((2, 2), dtype=np.float32),
    }
    save_file(weights, folder / "model.safetensors")
    return folder


def test_biases_of_a_run_are_kept_in_the_manifest_of_its_result(tmp_path: Path) -> None:
    learned = read_biases(a_run(tmp_path / "run"))
    assert json.loads(json.dumps(learned)) == learned
    biases = biases_of(result_in(tmp_path, learned=learned))
    assert list(biases) == ["spatial"]  # a model without the other bias has none
    assert biases["spatial"].values == (0.0, 0.25, 0.5, 0.75, 1.0, 1.25)
    assert biases["spatial"].edges == tuple(EDGES_KM)
    assert biases_of(result_in(tmp_path / "other", run="/gone")) == {}


def test_damaged_weights_are_an_error(tmp_path: Path) -> None:
    run = a_run(tmp_path / "run")
    (run / "model.safetensors").write_bytes(b"nothing")
    with refused(BrokenFolder):
        read_biases(run)


@pytest.mark.parametrize(
    "other", [{"seed": 2}, {"method": "stamp"}, {"fingerprint": "0"}, {"started_utc": "today"}]
)
def test_a_run_that_has_replaced_another_is_not_that_of_the_result(
    tmp_path: Path, other: dict[str, Any]
) -> None:
    run = a_run(tmp_path / "run", **other)
    trained = {"started_utc": "yesterday", "wall_seconds": 60.0}
    result = result_in(tmp_path, run=str(run), trained=trained)
    assert result.run_folder is None
    assert result.training_seconds == 60.0  # as the result itself records


def test_buckets_are_named_in_a_suitable_unit() -> None:
    spatial = LearnedBias(
        kind="spatial", edges=(0.5, 2.0, 100.0), values=(0.0,) * 4, start=(0.0,) * 4
    )
    assert spatial.buckets == ["< 0.5 km", "0.5–2 km", "2–100 km", "≥ 100 km"]
    edges = (1.0, 24.0, 168.0, 720.0)
    temporal = LearnedBias(kind="temporal", edges=edges, values=(0.0,) * 5, start=(0.0,) * 5)
    assert temporal.buckets == ["< 1 h", "1–24 h", "1–7 d", "7–30 d", "≥ 30 d"]


def test_biases_are_those_of_our_first_method_that_has_a_reader(tmp_path: Path) -> None:
    town = tmp_path / "town"
    result_of([1.0, 2.0], method="castpoi-next", seed=1).save(town / "a-next")
    evidence = read_evidence(town)
    assert row_with_biases(evidence, evidence.cities[0]) is None
    learned = {"spatial": {"edges": [1.0], "values": [0.5, -0.5]}}
    result_of([1.0, 2.0], method="castpoi", seed=1, learned=learned).save(town / "b-castpoi")
    evidence = read_evidence(town)
    found = row_with_biases(evidence, evidence.cities[0])
    assert found is not None
    assert found.name == "castpoi"
