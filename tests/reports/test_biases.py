"""Learned biases: from the weights of a run into a manifest, and from there into a report."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from castpoi.core.errors import BrokenFolder
from castpoi.reports.biases import LearnedBias, biases_of, read_biases
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
    assert biases["spatial"].values == [0.0, 0.25, 0.5, 0.75, 1.0, 1.25]
    assert biases["spatial"].edges == EDGES_KM
    assert biases_of(result_in(tmp_path / "other", run="/gone")) == {}


def test_damaged_weights_are_an_error(tmp_path: Path) -> None:
    run = a_run(tmp_path / "run")
    (run / "model.safetensors").write_bytes(b"nothing")
    with refused(BrokenFolder):
        read_biases(run)


def test_buckets_are_named_in_a_suitable_unit() -> None:
    spatial = LearnedBias(kind="spatial", edges=(0.5, 2, 100), values=(0,) * 4, is_sloped=False)
    assert spatial.buckets == ["< 0.5 km", "0.5–2 km", "2–100 km", "≥ 100 km"]
    edges = (1, 24, 168, 720)
    temporal = LearnedBias(kind="temporal", edges=edges, values=(0,) * 5, is_sloped=False)
    assert temporal.buckets == ["< 1 h", "1–24 h", "1–7 d", "7–30 d", "≥ 30 d"]
