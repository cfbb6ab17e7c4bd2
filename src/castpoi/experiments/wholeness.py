"""Whether what a suite has made is whole, and how torn results make room for new ones.

A disk may lose what a suite has written. What cannot be read, or is not of the experiment in whose
place it stands, does not count as there.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from castpoi.core.errors import BadInput, CastPoiError
from castpoi.core.files import (
    SHA256,
    file_faults,
    other_files,
    read_json,
    read_manifest,
    read_or_nothing,
)
from castpoi.evaluation.result import Result
from castpoi.experiments.estimate import Former
from castpoi.experiments.experiment import Experiment
from castpoi.methods.run import CONFIG, LOG, MODEL

PROOF: Final = "experiment.json"
PAPERS: Final = "run"
RUN_FILES: Final = ("manifest.json", CONFIG, LOG)
TOLD_OF_TRIAL: Final = ("validation", "best_epoch", "epochs")
"""What the config of a trial tells of its training."""

_OF_TRAINING: Final = re.compile(
    r"(config|checkpoint)\.json|log\.jsonl|places\.parquet|(model|epoch-\d+)\.safetensors"
    r"|\.lock|\..+\.tmp"
)
"""All that a run and its training hold, but for the manifest that says which of the two it is."""


def read_proof(path: Path) -> dict[str, Any]:
    """How a finished experiment came about; empty where the file is absent, torn or incomplete."""
    proof = read_or_nothing(path)
    try:
        Former.of(proof)
    except (AttributeError, KeyError, TypeError, ValueError):
        return {}
    return proof if proof.get("kind") == "experiment" else {}


def is_whole_result(folder: Path, experiment: Experiment) -> bool:
    """Whether a result can be read, with all its tables, and is that of an experiment."""
    try:
        return _is_of(experiment, Result.load(folder).manifest)
    except (CastPoiError, AttributeError, TypeError, ValueError):
        return False


def is_whole_trial(papers: Path, experiment: Experiment) -> bool:
    """Whether the papers of a run tell how a trial did."""
    try:
        manifest = read_manifest(papers, kind="run", needs={"commit"})
        training = read_json(papers / CONFIG)["training"]
        return _is_of(experiment, manifest) and training.keys() >= set(TOLD_OF_TRIAL)
    except (CastPoiError, AttributeError, KeyError, TypeError):
        return False


def is_whole_run(folder: Path) -> bool:
    """Whether a run is there with its log, its config and its weights, all unchanged."""
    try:
        manifest = read_manifest(folder, kind="run", needs={SHA256})
    except CastPoiError:
        return False
    return not file_faults(folder, manifest, (MODEL, CONFIG, LOG))


def is_remainder(folder: Path) -> bool:
    """Whether a folder is what a kill left of a run or a training while it came or went."""
    return folder.is_dir() and all(_OF_TRAINING.fullmatch(each.name) for each in folder.iterdir())


def make_room(folder: Path) -> None:
    """Empty the place of a result where one is torn; what a suite does not write stays there.

    Raises:
        BadInput: something else is there.
    """
    if not folder.is_dir():
        return
    kind = read_or_nothing(folder / "manifest.json").get("kind")
    strange = other_files(folder, "result")
    strange += [f"a {kind}"] if kind not in (None, "result") else []
    if strange:
        raise BadInput(
            f"{folder} holds {strange[0]}, which is no part of a result; move it away, or choose "
            "another --out"
        )
    if kind == "result":  # it is replaced when the new one is whole
        return
    for path in _below(folder):
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        else:
            path.unlink()


def _is_of(experiment: Experiment, manifest: Mapping[str, Any]) -> bool:
    wanted = {
        "method": experiment.row.method,
        "seed": experiment.seed,
        "part": experiment.part,
        "fingerprint": experiment.city.fingerprint,
    }
    return all(manifest.get(name) == value for name, value in wanted.items())


def _below(folder: Path) -> Iterator[Path]:
    """All that is in a folder, deepest first; links are not followed."""
    for path in sorted(folder.iterdir()):
        if path.is_dir() and not path.is_symlink():
            yield from _below(path)
        yield path
