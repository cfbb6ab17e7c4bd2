"""A run on disk: a method that was trained or counted on a city, ready to rank.

    RUN/model.safetensors   its weights or counts
    RUN/config.json         its settings
    RUN/places.parquet      the places it ranks, as in its city, with their known check-ins
    RUN/log.jsonl           the events of its training, one per line
    RUN/manifest.json       method, seed, city and fingerprint, SHA-256 of all files, versions,
                            commit, wall time

Loading reads data only; it never runs code from the folder.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl
from safetensors import SafetensorError
from safetensors.numpy import load, save

from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.core.errors import BadInput, BrokenFolder
from castpoi.core.files import (
    SHA256,
    OfMethod,
    check_files,
    new_folder,
    read_json,
    read_manifest,
    read_table,
    write_json,
    write_manifest,
)
from castpoi.core.provenance import Stopwatch, now_utc
from castpoi.methods.ranker import SavableRanker
from castpoi.methods.registry import METHODS

MODEL: Final = "model.safetensors"
CONFIG: Final = "config.json"
PLACES: Final = "places.parquet"
LOG: Final = "log.jsonl"

KNOWN_CHECKINS: Final = "checkins"
"""Column of a run's places that a city does not have: check-ins in the splits that it uses."""

PLACE_SCHEMA: Final = pl.Schema([*record.PLACE_SCHEMA.items(), (KNOWN_CHECKINS, pl.UInt32())])

_TRAIN_AGAIN: Final = "train again with 'castpoi train'"


@dataclass(frozen=True, kw_only=True)
class Run(OfMethod):
    """A ranker with its settings and provenance, in memory or on disk."""

    ranker: SavableRanker[Any]
    places: pl.DataFrame
    """The places it ranks, by number (`PLACE_SCHEMA`)."""
    log: str = ""
    """The events of its training, one JSON object per line."""
    folder: Path | None = None
    """Where it is on disk; None if it was never saved."""

    @property
    def name(self) -> str:
        """Its folder, or its method if it has none."""
        return str(self.folder or f"this {self.method}")

    @property
    def model_sha256(self) -> str:
        """SHA-256 of the weights or counts."""
        return str(self.manifest[SHA256][MODEL])

    @property
    def city(self) -> Path | None:
        """The city's folder when the run was made; None for a city in memory."""
        return Path(self.manifest["city"]) if self.manifest["city"] else None

    @property
    def learned_until_us(self) -> int | None:
        """Instant of the last check-in that it learned from; None for a run of an older castpoi."""
        return self.manifest.get("learned_until_us")

    @property
    def row(self) -> dict[str, Any]:
        """Its method, the preset, and the settings that differ from it."""
        return dict(self.manifest["row"])

    def check_may_predict(self, part: str) -> None:
        """Refuse a split that the run has already seen."""
        if part in self.manifest["knows"]:
            seen = f"the {part} split" if self.manifest["part"] else "all check-ins"
            raise BadInput(
                f"{self.name} has seen {seen}, so it cannot be evaluated on the {part} split; "
                f"train it with 'castpoi train --holdout {part}'"
            )

    def save(self, folder: Path, *, overwrite: bool = False) -> None:
        """Write the run to a new folder, which appears complete or not at all."""
        with new_folder(folder, kind="run", overwrite=overwrite) as staging:
            (staging / MODEL).write_bytes(_serialized(self.ranker))
            write_json(staging / CONFIG, self.ranker.config)
            self.places.write_parquet(staging / PLACES, compression="zstd")
            (staging / LOG).write_text(self.log, encoding="utf-8")
            entries = {name: each for name, each in self.manifest.items() if name != SHA256}
            write_manifest(staging, entries)


class RunLog:
    """The events of a run, one JSON object per line, without user ids and coordinates.

    They are in memory until the run is written; with a path they are also appended to that file at
    once, so that a long training can be watched.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self.lines: list[str] = []
        if path is not None:
            path.write_text("", encoding="utf-8")

    def event(self, event: str, **fields: object) -> None:
        """Append an event."""
        line = json.dumps({"at_utc": now_utc(), "event": event, **fields}, ensure_ascii=False)
        self.lines.append(line + "\n")
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as log:
                log.write(line + "\n")


def new_run(
    ranker: SavableRanker[Any],
    *,
    method: str,
    preset: str | None = None,
    settings: Mapping[str, str] | None = None,
    seed: int,
    part: str | None,
    knows: Sequence[str],
    city: Path | None,
    fingerprint: str,
    places: pl.DataFrame,
    work: Stopwatch,
    log: str = "",
    learned_until_us: int | None = None,
    start: Run | None = None,
) -> Run:
    """A run in memory; `settings` are those that differ from the preset.

    `learned_until_us` is the instant of its last check-in, `start` the run from which its training
    continued.
    """
    manifest = {
        "kind": "run",
        "method": method,
        "row": {"method": method, "preset": preset, "settings": dict(settings or {})},
        "seed": seed,
        "part": part,
        "knows": list(knows),
        "city": None if city is None else str(city.resolve()),
        "fingerprint": fingerprint,
        SHA256: {MODEL: hashlib.sha256(_serialized(ranker)).hexdigest()},
        "learned_until_us": learned_until_us,
        **work.provenance(),
    }
    if start is not None:
        manifest["from"] = {"run": start.name, SHA256: start.model_sha256}
    return Run(ranker=ranker, manifest=manifest, places=places, log=log)


def _serialized(ranker: SavableRanker[Any]) -> bytes:
    return save({name: np.asarray(array, order="C") for name, array in ranker.arrays.items()})


def load_run(folder: Path) -> Run:
    """Read a run and check that its files have not changed since it was written."""
    manifest = read_manifest(folder, kind="run", needs={SHA256})
    check_files(folder, manifest, (MODEL, CONFIG, PLACES))
    method = METHODS.named(str(manifest["method"]))
    config = read_json(folder / CONFIG)
    try:
        arrays = load((folder / MODEL).read_bytes())
    except SafetensorError as problem:
        raise BrokenFolder(f"{folder / MODEL} is damaged ({problem}); {_TRAIN_AGAIN}") from problem
    try:
        ranker = method.ranker_class().restore(config, arrays)
    except (BadInput, KeyError, TypeError, ValueError) as problem:  # perhaps of an earlier castpoi
        raise BrokenFolder(
            f"{folder} does not fit the method {method.name} ({problem}); {_TRAIN_AGAIN}"
        ) from problem
    places = read_table(folder / PLACES, PLACE_SCHEMA, how_to_fix=_TRAIN_AGAIN)
    log = (folder / LOG).read_text(encoding="utf-8") if (folder / LOG).exists() else ""
    return Run(ranker=ranker, manifest=manifest, places=places, log=log, folder=folder)


def places_of(city: City, knows: Sequence[str]) -> pl.DataFrame:
    """The places of a city, with the check-ins of each in the splits that a run uses."""
    trajectories = city.trajectories
    known = np.isin(trajectories.part, [record.PARTS.index(part) for part in knows])
    counts = np.bincount(trajectories.place[known], minlength=city.places.height)
    return city.places.with_columns(pl.Series(KNOWN_CHECKINS, counts)).cast(PLACE_SCHEMA)


def city_of(run: Run, city: Path | None = None) -> City:
    """The city a run was made on, from its folder or another one; refuses another split."""
    folder = run.city if city is None else city
    if folder is None or not folder.is_dir():
        raise BrokenFolder(
            f"{run.name} was trained on a city that is not at {folder}; give its folder "
            f"with --city, or {_TRAIN_AGAIN}"
        )
    found = City.load(folder)
    if found.fingerprint != run.fingerprint:
        raise BrokenFolder(
            f"{run.name} was trained on a city with fingerprint {run.fingerprint[:12]}, but "
            f"{folder} has {found.fingerprint[:12]}; give its own city with --city, or "
            f"{_TRAIN_AGAIN}"
        )
    return found
