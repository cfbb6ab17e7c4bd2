"""The folder of a suite: which results it holds, and which must be made and why.

DIR/suite.json                  the tables and the state of every experiment, for people and reports
DIR/CITY/ROW/SEED/              a result; its manifest holds the key and the cost of its experiment
DIR/CITY/ROW/SEED/run/          manifest, config and log of its run, without the weights
DIR/runs/CITY/ROW/SEED/         the run while it is needed, or for good
DIR/runs/CITY/ROW/SEED.json     the spec that its worker reads (see `worker.py`)
DIR/logs/CITY/ROW/SEED.log      the output of its worker
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from castpoi.core.errors import BadInput, CastPoiError
from castpoi.core.files import is_folder_of, other_files, read_or_nothing, write_json, writing
from castpoi.core.staging import sweep
from castpoi.evaluation.result import EXPERIMENT, Result
from castpoi.experiments.experiment import LOGS, RUNS, CityFolder, Experiment, changes, key_of
from castpoi.experiments.suite import Suite
from castpoi.methods.outline import TableOutline
from castpoi.training.train import checkpoint_dir_of

State = Literal["done", "failed", "running", "waiting"]
Record = Mapping[str, Any]
"""How an experiment was made, as its worker writes it; empty until it is done."""

_MISSING: Final = "missing"
_DAMAGED: Final = "damaged"
_OF_RECORD: Final = {"row", "key", "train_checkins", "threads", "seconds"}


@dataclass(frozen=True, kw_only=True)
class Planned:
    """An experiment, and why it must be made."""

    experiment: Experiment
    why: str = ""  # empty if its result exists

    @property
    def is_done(self) -> bool:
        """Whether its result exists."""
        return not self.why


@dataclass(frozen=True)
class SuiteFolder:
    """The paths of a suite."""

    root: Path

    def result(self, experiment: Experiment) -> Path:
        """The result of an experiment; an existing CITY/ROW-SEED or CITY/ROW (counted) also is."""
        folder = self.root / experiment.name
        row = folder.parent
        flat = row.with_name(f"{row.name}-{folder.name}") if experiment.row.is_learned else row
        return flat if is_folder_of(flat, "result") and not folder.exists() else folder

    def run(self, experiment: Experiment) -> Path:
        """The run of an experiment."""
        return self.root / RUNS / experiment.name

    def spec(self, experiment: Experiment) -> Path:
        """The spec that the worker of an experiment reads."""
        return self.root / RUNS / f"{experiment.name}.json"

    def outcome(self, experiment: Experiment) -> Path:
        """The record or the error that the worker of an experiment writes."""
        return self.root / RUNS / f"{experiment.name}.outcome.json"

    def log(self, experiment: Experiment) -> Path:
        """The output of the worker of an experiment."""
        return self.root / LOGS / f"{experiment.name}.log"

    def plan(self, experiments: Sequence[Experiment], *, any_code: bool = False) -> list[Planned]:
        """Which experiments must be made; with `any_code` the version of a method may differ."""
        for city in {each.city.name: each.city for each in experiments}.values():
            self._check_city(city)
        return [
            Planned(experiment=each, why=self._why(each, any_code=any_code)) for each in experiments
        ]

    def remove_run(self, experiment: Experiment) -> None:
        """Remove the run of an experiment, and the other files of its worker and its training."""
        run = self.run(experiment)
        for folder, kind in ((run, "run"), (checkpoint_dir_of(run), "training")):
            sweep(folder)
            clear(folder, kind)
        self.outcome(experiment).unlink(missing_ok=True)
        self.spec(experiment).unlink(missing_ok=True)

    def _why(self, experiment: Experiment, *, any_code: bool) -> str:
        folder = self.result(experiment)
        if not (folder / "manifest.json").is_file():
            return _MISSING
        try:
            result = Result.load(folder)
        except CastPoiError:
            return _DAMAGED
        if result.manifest["part"] != experiment.part:
            return "split changed"
        former = _record_of(result.manifest).get("key") or key_of(result)
        changed = changes(experiment.key, former, any_code=any_code)
        return f"{' and '.join(changed)} changed" if changed else ""

    def _check_city(self, city: CityFolder) -> None:
        """Refuse a city whose name another one has here, or that has another name here."""
        for folder, record in self.found():
            name, former = folder.relative_to(self.root).parts[0], record["key"]["fingerprint"]
            if name == city.name and former != city.fingerprint:
                raise BadInput(
                    f"{folder} is of another city named {name} (fingerprint {former[:12]}, not "
                    f"{city.fingerprint[:12]}); choose another --out, or remove {self.root / name}"
                )
            if name != city.name and former == city.fingerprint:
                raise BadInput(
                    f"{city.folder} is the city that is named {name} in {self.root} (fingerprint "
                    f"{former[:12]}); rename its folder to {name}, or choose another --out"
                )

    def found(self) -> Iterator[tuple[Path, dict[str, Any]]]:
        """The folder of every result, and how it was made."""
        for path in sorted(self.root.glob("*/*/*/manifest.json")):
            record, folder = _record_of(read_or_nothing(path)), path.parent
            if record and record["row"]["name"] == folder.parent.name:  # not of another layout
                yield folder, record


def _record_of(manifest: dict[str, Any]) -> dict[str, Any]:
    record = manifest.get(EXPERIMENT)
    return record if isinstance(record, dict) and record.keys() >= _OF_RECORD else {}


def clear(folder: Path, kind: str, *, only_damaged: bool = False) -> None:
    """Remove a folder of a kind, or a damaged one with nothing but files of that kind in it."""
    found = read_or_nothing(folder / "manifest.json").get("kind")
    removable = (None,) if only_damaged else (None, kind)
    if folder.is_dir() and found in removable and not other_files(folder, kind):
        shutil.rmtree(folder.resolve())


SUITE_FILE: Final = "suite.json"


def check_rows(folder: SuiteFolder, suite: Suite) -> None:
    """Refuse a row whose name another table of a folder has for another recipe.

    A table of the same name is that of the suite before it was edited: it is replaced.
    """
    recipes = {row.name: row.recipe for row in suite.rows}
    own = {table.name for table in suite.tables}
    for table in _tables_of(read_or_nothing(folder.root / SUITE_FILE)):
        for row in () if table.name in own else table.rows:
            if recipes.get(row.name, row.recipe) != row.recipe:
                raise BadInput(
                    f"the row {row.name} of the suite {suite.name} is also in the table "
                    f"{table.name} of {folder.root}, with another method, preset or settings; "
                    "rename the row, since its name is that of a folder, or choose another --out"
                )


class SuiteStatus:
    """The content of suite.json; every change is written at once."""

    def __init__(self, folder: SuiteFolder, suite: Suite, plan: Sequence[Planned]) -> None:
        check_rows(folder, suite)  # again, now that nobody else can write
        self._path = folder.root / SUITE_FILE
        former = read_or_nothing(self._path)
        self._experiments = _entries(former, "experiments")
        for entry in self._experiments.values():  # nothing is running: this process has the lock
            if entry.get("state") == "running":
                entry["state"] = "waiting"
        cities = _entries(former, "cities")
        for planned in plan:
            each, city = planned.experiment, planned.experiment.city
            cities[city.name] = {"folder": str(city.folder), "fingerprint": city.fingerprint}
            self._experiments[each.name] = {
                "city": city.name,
                "row": each.row.name,
                "seed": each.seed,
                "state": "done" if planned.is_done else "waiting",
                "why": planned.why,
            }
        tables = {each.name: each.to_dict() for each in (*_tables_of(former), *suite.tables)}
        self._content = {"kind": "suite", "tables": tables, "cities": cities}
        self._save()

    def note(self, experiment: Experiment, state: State, why: str, record: Record) -> None:
        """Store the state of an experiment; the record is in its result."""
        self._experiments[experiment.name] |= {"state": state, "why": why}
        self._save()

    def _save(self) -> None:
        with writing(self._path):
            write_json(self._path, {**self._content, "experiments": self._experiments})


def _entries(former: Mapping[str, Any], part: str) -> dict[str, dict[str, Any]]:
    """The entries of a part of an earlier file; damaged ones are left out."""
    found = former.get(part)
    entries = found.items() if isinstance(found, dict) else ()
    return {name: entry for name, entry in entries if isinstance(entry, dict)}


def _tables_of(former: Mapping[str, Any]) -> list[TableOutline]:
    """The tables of an earlier file that can be read; a later command writes the others again."""
    tables = []
    for name, table in _entries(former, "tables").items():
        with suppress(BadInput):
            tables.append(TableOutline.from_dict(name, table))
    return tables
