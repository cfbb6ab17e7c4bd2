"""A run on disk: a method that has been trained or counted on a city, ready to rank.

    RUN/model.safetensors   what it has counted or learned
    RUN/config.json         its settings
    RUN/log.jsonl           what happened, one event a line
    RUN/manifest.json       method, seed, city and fingerprint, versions, commit, wall time

Loading reads numbers and words only; it never runs code from the folder.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from castpoi.errors import BadInput, BrokenFolder
from castpoi.files import read_json, read_manifest, write_json
from castpoi.methods import METHODS
from castpoi.provenance import Stopwatch, now_utc
from castpoi.ranker import SavableRanker

MODEL: Final = "model.safetensors"
CONFIG: Final = "config.json"
LOG: Final = "log.jsonl"

_TRAIN_AGAIN: Final = "train again with 'castpoi train'"


@dataclass(frozen=True, kw_only=True)
class Run:
    """A ranker and where it comes from."""

    ranker: SavableRanker[Any]
    manifest: dict[str, Any]
    folder: Path

    @property
    def method(self) -> str:
        """Name of the method."""
        return str(self.manifest["method"])

    @property
    def seed(self) -> int:
        """Seed of its training."""
        return int(self.manifest["seed"])

    @property
    def city(self) -> Path:
        """Where the city stood when the run was made."""
        return Path(self.manifest["city"])

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the city it was made on."""
        return str(self.manifest["fingerprint"])

    def check_may_foretell(self, fingerprint: str, part: str) -> None:
        """Refuse a city of another split, and a part that the run has already seen."""
        if fingerprint != self.fingerprint:
            raise BrokenFolder(
                f"{self.folder} was trained on a city with fingerprint {self.fingerprint[:12]}, "
                f"but this city has {fingerprint[:12]}; evaluate it on {self.city}, or train on "
                "this city"
            )
        if part in self.manifest["knows"]:
            raise BadInput(
                f"{self.folder} has seen the {part} part, so it cannot be evaluated on it; train "
                f"it with 'castpoi train --part {part}'"
            )


class RunLog:
    """The events of a run, one JSON object a line; never a user id, never a coordinate.

    Kept in memory until the run is written; with a path also on disk from the first event on, so
    that a person can watch a long training.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self.lines: list[str] = []
        if path is not None:
            path.write_text("", encoding="utf-8")

    def event(self, event: str, **fields: object) -> None:
        """Note what has just happened."""
        line = json.dumps({"at_utc": now_utc(), "event": event, **fields}, ensure_ascii=False)
        self.lines.append(line + "\n")
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as log:
                log.write(line + "\n")

    def save(self, path: Path) -> None:
        """Write all events to a file."""
        path.write_text("".join(self.lines), encoding="utf-8")


def write_run(
    folder: Path,
    ranker: SavableRanker[Any],
    *,
    method: str,
    seed: int,
    part: str,
    knows: Sequence[str],
    city: Path,
    fingerprint: str,
    work: Stopwatch,
) -> dict[str, Any]:
    """Write the files of a run into an existing folder, and return its manifest."""
    model = save({name: np.asarray(array, order="C") for name, array in ranker.arrays.items()})
    (folder / MODEL).write_bytes(model)
    write_json(folder / CONFIG, ranker.config)
    manifest = {
        "kind": "run",
        "method": method,
        "seed": seed,
        "part": part,
        "knows": list(knows),
        "city": str(city.resolve()),
        "fingerprint": fingerprint,
        "model_sha256": hashlib.sha256(model).hexdigest(),
        **work.provenance(),
    }
    write_json(folder / "manifest.json", manifest)
    return manifest


def load_run(folder: Path) -> Run:
    """Read a run and check that its model is the one its manifest speaks of."""
    manifest = read_manifest(folder, kind="run")
    needed = {"method", "seed", "knows", "city", "fingerprint", "model_sha256"}
    lacking = needed - manifest.keys()
    if lacking:
        raise BrokenFolder(
            f"the manifest of {folder} does not say {', '.join(sorted(lacking))}; {_TRAIN_AGAIN}"
        )
    method = METHODS.named(manifest["method"])
    arrays = _read_model(folder / MODEL, manifest["model_sha256"])
    config = read_json(folder / CONFIG)
    try:
        ranker = method.ranker_class().restore(config, arrays)
    except (KeyError, TypeError, ValueError) as problem:
        raise BrokenFolder(
            f"{folder} does not fit the method {method.name} ({problem}); {_TRAIN_AGAIN}"
        ) from problem
    return Run(ranker=ranker, manifest=manifest, folder=folder)


def _read_model(path: Path, sha256: str) -> dict[str, Any]:
    try:
        model = path.read_bytes()
    except OSError as problem:
        raise BrokenFolder(
            f"{path} cannot be read: {problem.strerror}; {_TRAIN_AGAIN}"
        ) from problem
    if hashlib.sha256(model).hexdigest() != sha256:
        raise BrokenFolder(f"{path} has changed since it was trained; {_TRAIN_AGAIN}")
    try:
        return dict(load(model))
    except SafetensorError as problem:
        raise BrokenFolder(f"{path} is damaged ({problem}); {_TRAIN_AGAIN}") from problem
