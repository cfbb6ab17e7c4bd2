"""DIR/suite.json: the tables of a suite and the state of its experiments, for reports and people.

Nothing is decided by these states: a result exists if its own manifest has the right key.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from castpoi.core.errors import BadInput
from castpoi.core.files import read_or_nothing, write_json, writing
from castpoi.experiments.experiment import Experiment
from castpoi.experiments.folder import Planned, SuiteFolder
from castpoi.experiments.runner import Record, State
from castpoi.experiments.suite import Suite
from castpoi.methods.outline import TableOutline

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
