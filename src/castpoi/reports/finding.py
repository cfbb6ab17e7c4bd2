"""A finding: one result, the row of a report it belongs to, and how it was made.

What was run beside a result (`experiment.json`, the papers of the run in `run/`) is read where it
stands. A run that stays elsewhere is believed only if it is the one that the result was made by:
another may have taken its place since.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from castpoi.core.errors import BrokenFolder
from castpoi.core.files import is_folder_of, read_json
from castpoi.evaluation.result import Result
from castpoi.methods.outline import KNOWN_TIME, Row, row_from_dict
from castpoi.methods.run import MODEL
from castpoi.reports.outline import OUR_METHODS, row_of_oracle, row_of_run
from castpoi.reports.variants import changes_of, preset_of

_ORACLE_KEY: Final = "oracle"  # in the manifest of a result that tools/recbole_oracle.py made
_PLAIN_NAMES: Final = ("results", "res")
_EXPERIMENT: Final = "experiment.json"
_STARTED: Final = "started_utc"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One result, the row it belongs to and where it stands."""

    folder: Path
    row: Row
    city: str
    result: Result
    experiment: dict[str, Any]
    """How a suite made it; empty where no suite did."""
    is_outdated: bool = False
    """Whether the suite has made its row another one since."""

    @property
    def seed(self) -> int:
        """Seed of its training."""
        return self.result.seed

    @cached_property
    def run_folder(self) -> Path | None:
        """The run it was made by: the papers beside the result, or the run itself if it stays."""
        papers = self.folder / "run"
        return papers if is_folder_of(papers, "run") else self._run_that_stays

    @cached_property
    def weights_folder(self) -> Path | None:
        """The run with its weights, if it is still there."""
        stays = self._run_that_stays
        return stays if stays is not None and (stays / MODEL).is_file() else None

    @cached_property
    def _run_that_stays(self) -> Path | None:
        """Where the manifest says that the run is, if the run there is still that one."""
        own = self.result.manifest
        if "run" not in own or not is_folder_of(Path(own["run"]), "run"):
            return None
        told = Path(own["run"])
        manifest = read_json(told / "manifest.json")
        is_same = all(manifest.get(each) == own[each] for each in ("method", "seed", "fingerprint"))
        started = self.trained.get(_STARTED, manifest.get(_STARTED))
        return told if is_same and manifest.get(_STARTED) == started else None

    @property
    def trained(self) -> dict[str, Any]:
        """What the result says about its training; empty where it says nothing."""
        return self.result.manifest.get("trained") or {}

    @cached_property
    def run_manifest(self) -> dict[str, Any]:
        """The manifest of its run; empty where there is none."""
        return {} if self.run_folder is None else read_json(self.run_folder / "manifest.json")

    @cached_property
    def events(self) -> list[dict[str, Any]]:
        """What happened in its training, in order; empty where no log is there."""
        path = (self.run_folder or self.folder) / "log.jsonl"
        if not path.is_file():
            return []
        try:
            return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        except ValueError as problem:
            raise BrokenFolder(
                f"{path} is damaged ({problem}); remove it to report without training curves"
            ) from problem

    @property
    def commands(self) -> list[str]:
        """The commands that make this result again."""
        if self.experiment:
            return [str(command) for command in self.experiment.get("commands", [])]
        told = self.result.manifest.get("command")
        return [] if told is None else [str(told)]

    @property
    def training_seconds(self) -> float | None:
        """How long its training took; None for a counted method or where nobody says."""
        seconds = {**self.trained, **self.run_manifest}.get("wall_seconds")
        return None if seconds is None or not self.row.is_learned else float(seconds)

    @property
    def training(self) -> tuple[object, ...]:
        """Which training it rests on: results that rank one and the same weights share it."""
        started = {**self.trained, **self.run_manifest}.get(_STARTED, str(self.folder))
        return self.result.fingerprint, self.result.method, self.seed, started


def find(path: Path, rows: Mapping[str, Row]) -> Finding:
    """The result in a folder; `rows` are those of the suite that it may be of, by name."""
    result = Result.load(path)
    experiment = read_json(path / _EXPERIMENT) if (path / _EXPERIMENT).is_file() else {}
    if experiment:
        told = _told_row(experiment, path)
        # without its suite a row of ours is not called what it was called beside its variants
        alone = _row_of(result) if told.method in OUR_METHODS else told
        row = rows.get(told.name, alone)
        is_outdated = told.name in rows and told.recipe != row.recipe
    else:
        is_outdated = False
        named = rows.get(path.parent.name)
        row = named if named and named.known_time == result.known_time else _row_of(result)
    city = experiment.get("city") or _city_name(path, in_suite=path.parent.name in rows)
    return Finding(
        folder=path,
        row=row,
        city=city,
        result=result,
        experiment=experiment,
        is_outdated=is_outdated,
    )


def _told_row(experiment: Mapping[str, Any], path: Path) -> Row:
    try:
        return row_from_dict(experiment["row"])
    except (KeyError, TypeError, ValueError) as problem:
        raise BrokenFolder(
            f"{path / _EXPERIMENT} is not as 'castpoi reproduce' writes it ({problem!r}); remove "
            f"{path} and give that command again"
        ) from problem


def _row_of(result: Result) -> Row:
    """The row of a result about which no suite says anything."""
    if _ORACLE_KEY in result.manifest:
        return row_of_oracle(result.method)
    trained = result.manifest.get("trained") or {}
    changes = changes_of(result.method, trained)
    told = {KNOWN_TIME: "true"} if result.known_time else {}
    return row_of_run(result.method, changes | told, preset_of(result.method, trained))


def _city_name(path: Path, *, in_suite: bool) -> str:
    """The folder that holds the results; in a suite CITY/ROW/SEED."""
    holder = path.resolve().parents[1 if in_suite else 0]
    return holder.parent.name if holder.name in _PLAIN_NAMES else holder.name
