"""DIR/suite.json: what was asked for in a folder, and how it stands; for reports and for people.

The states are told, not trusted: whether a result is there is decided by its key (`plan.py`).
"""

import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Literal, Protocol

from castpoi.core.errors import BadInput
from castpoi.core.files import read_or_nothing, write_json, writing
from castpoi.experiments.experiment import Experiment
from castpoi.experiments.folder import SuiteFolder
from castpoi.experiments.job import commands_of
from castpoi.experiments.plan import Planned
from castpoi.experiments.suite import Suite
from castpoi.methods.outline import TableOutline

State = Literal["done", "failed", "under way", "waiting"]

SUITE_FILE: Final = "suite.json"
_UNDER_WAY: Final[State] = "under way"


class Record(Protocol):
    """Someone who notes how experiments stand."""

    def note(self, experiment: Experiment, state: State, why: str = "") -> None:
        """Say how an experiment stands that is not done."""

    def note_done(self, experiment: Experiment, proof: Mapping[str, Any]) -> None:
        """Say that an experiment is done, and how it came about."""


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
                    f"the row {row.name} of the suite {suite.name} stands in the table "
                    f"{table.name} of {folder.root} too, with another method, preset or settings; "
                    "rename the row, since a name is that of a folder, or choose another --out"
                )


class SuiteRecord:
    """The record of a folder; every change is on disk at once."""

    def __init__(self, folder: SuiteFolder, suite: Suite, plan: Sequence[Planned]) -> None:
        check_rows(folder, suite)  # again, now that nobody else can write
        self._path = folder.root / SUITE_FILE
        self._folder = folder
        former = read_or_nothing(self._path)
        tables = (*_tables_of(former), *suite.tables)
        self._content: dict[str, Any] = {
            "kind": "suite",
            "tables": {table.name: table.to_dict() for table in tables},
            "cities": _entries(former, "cities"),
            "experiments": {
                name: _at_rest(entry)
                for name, entry in _entries(former, "experiments").items()
                if "state" in entry
            },
        }
        for planned in plan:
            self._add(planned)
        self._save()

    def note(self, experiment: Experiment, state: State, why: str = "") -> None:
        """Say how an experiment stands that is not done."""
        self._change(experiment, state=state, why=why, **_from_proof({}))

    def note_done(self, experiment: Experiment, proof: Mapping[str, Any]) -> None:
        """Say that an experiment is done, and how it came about."""
        self._change(experiment, state="done", why="", **_from_proof(proof))

    def _change(self, experiment: Experiment, **entries: object) -> None:
        self._content["experiments"][experiment.name] |= entries
        self._save()

    def _add(self, planned: Planned) -> None:
        experiment = planned.experiment
        city = experiment.city
        self._content["cities"][city.name] = {
            "folder": str(city.folder),
            "fingerprint": city.fingerprint,
        }
        self._content["experiments"][experiment.name] = {
            "city": city.name,
            "row": experiment.row.name,
            "seed": experiment.seed,
            "state": "done" if planned.is_there else "waiting",
            "why": planned.why,
            "commands": [
                shlex.join(["castpoi", *words]) for words in commands_of(experiment, self._folder)
            ],
            **_from_proof(self._folder.proof(experiment) if planned.is_there else {}),
        }

    def _save(self) -> None:
        with writing(self._path):
            write_json(self._path, self._content)


def _entries(former: Mapping[str, Any], part: str) -> dict[str, dict[str, Any]]:
    """The entries of a part of an earlier record; what is damaged is left out."""
    found = former.get(part)
    entries = found.items() if isinstance(found, dict) else ()
    return {name: entry for name, entry in entries if isinstance(entry, dict)}


def _at_rest(entry: dict[str, Any]) -> dict[str, Any]:
    """An entry of an earlier command: nothing of it is under way, since we are alone here."""
    return {**entry, "state": "waiting"} if entry["state"] == _UNDER_WAY else entry


def _tables_of(former: Mapping[str, Any]) -> list[TableOutline]:
    """The tables of an earlier record that can be read; another command writes the others anew."""
    tables = []
    for name, table in _entries(former, "tables").items():
        with suppress(AttributeError, KeyError, TypeError):
            tables.append(TableOutline.from_dict(name, table))
    return tables


def _from_proof(proof: Mapping[str, Any]) -> dict[str, Any]:
    return {"seconds": proof.get("seconds"), "key": proof.get("key")}
