"""DIR/suite.json: what was asked for in a folder, and how it stands; for reports and for people.

The states are told, not trusted: whether a result is there is decided by its key (`plan.py`).
"""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, Protocol

from castpoi.experiments.experiment import Experiment
from castpoi.experiments.folder import SuiteFolder
from castpoi.experiments.job import commands_of
from castpoi.experiments.plan import Planned
from castpoi.experiments.suite import Suite
from castpoi.files import read_or_nothing, write_json

State = Literal["done", "failed", "under way", "waiting"]

_FILE: Final = "suite.json"


class Record(Protocol):
    """Someone who notes how experiments stand."""

    def note(self, experiment: Experiment, state: State, why: str = "") -> None:
        """Say how an experiment stands that is not done."""

    def note_done(self, experiment: Experiment, proof: Mapping[str, Any]) -> None:
        """Say that an experiment is done, and how it came about."""


class SuiteRecord:
    """The record of a folder; every change is on disk at once."""

    def __init__(self, folder: SuiteFolder, suite: Suite, plan: Sequence[Planned]) -> None:
        self._path = folder.root / _FILE
        self._folder = folder
        former = read_or_nothing(self._path)
        self._content: dict[str, Any] = {
            "kind": "suite",
            "tables": former.get("tables", {}),
            "cities": former.get("cities", {}),
            "experiments": former.get("experiments", {}),
        }
        self._content["tables"] |= {table.name: table.to_dict() for table in suite.tables}
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
        write_json(self._path, self._content)


def _from_proof(proof: Mapping[str, Any]) -> dict[str, Any]:
    return {"seconds": proof.get("seconds"), "key": proof.get("key")}
