"""An experiment: one row of a suite on one city with one seed; it becomes one result.

A trial is an experiment that ends with its training, which tells how it does on validation.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from castpoi.checkins import record
from castpoi.core.errors import BadInput
from castpoi.core.files import read_manifest
from castpoi.experiments.suite import Suite
from castpoi.methods.outline import Row
from castpoi.methods.registry import METHODS

COUNTED_SEED: Final = 0
"""The one seed of a method that only counts; another would give the same ranks."""

RUNS: Final = "runs"
LOGS: Final = "logs"
"""Folders of every suite beside those of its cities, so no city may have their names."""


@dataclass(frozen=True, kw_only=True)
class CityFolder:
    """Where a city is, and what must be known of it without reading its check-ins."""

    folder: Path
    fingerprint: str
    train_checkins: int

    @property
    def name(self) -> str:
        """Name of its folder, never `..`, which as a part of a path leads out of --out."""
        whole = self.folder.resolve() if self.folder.name == ".." else self.folder.absolute()
        return whole.name

    @classmethod
    def at(cls, folder: Path) -> "CityFolder":
        """The city in a folder; its content is checked by those who read it."""
        manifest = read_manifest(folder, kind="city", needs={"fingerprint", "train"})
        found = cls(
            folder=folder,
            fingerprint=str(manifest["fingerprint"]),
            train_checkins=int(manifest["train"]),
        )
        if found.name in (RUNS, LOGS):
            raise BadInput(
                f"{folder} is named {found.name}, as a folder of every suite; rename the city"
            )
        return found


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """One row on one city with one seed."""

    city: CityFolder
    row: Row
    seed: int
    part: str = record.TEST
    """The part it is judged by."""

    @property
    def is_trial(self) -> bool:
        """Whether it is judged by validation, as training does it, and is never evaluated."""
        return self.part == record.VALIDATION

    @property
    def name(self) -> str:
        """City, row and seed, as `nyc/castpoi/42`; also the way to its folder."""
        return f"{self.city.name}/{self.row.name}/{self.seed}"

    @property
    def needs_training(self) -> bool:
        """Whether its method is learned."""
        return METHODS.named(self.row.method).needs_training


def experiments_of(
    suite: Suite, cities: Sequence[CityFolder], seeds: Sequence[int], only: Sequence[str] = ()
) -> list[Experiment]:
    """All experiments of a suite: the first seed of every row first, so that tables fill early."""
    _check_each_once(cities)
    names = [row.name for row in suite.rows]
    unknown = next((name for name in only if name not in names), None)
    if unknown is not None:
        raise BadInput(
            f"the suite {suite.name} has no row '{unknown}'; its rows are {', '.join(names)}"
        )
    rows = [row for row in suite.rows if row.name in only or not only]
    return [
        Experiment(city=city, row=row, seed=seed if learned else COUNTED_SEED)
        for number, seed in enumerate(seeds)
        for city in cities
        for row in rows
        for learned in [METHODS.named(row.method).needs_training]
        if learned or number == 0
    ]


def _check_each_once(cities: Sequence[CityFolder]) -> None:
    """Refuse two cities of one name, whose results would mix, and one city under two names."""
    names: set[str] = set()
    folders: dict[str, Path] = {}
    for city in cities:
        if city.name in names:
            raise BadInput(
                f"two cities are named {city.name}; name each once, or rename one's folder"
            )
        names.add(city.name)
        twin = folders.setdefault(city.fingerprint, city.folder)
        if twin != city.folder:
            raise BadInput(
                f"{twin} and {city.folder} are one city (fingerprint {city.fingerprint[:12]}); "
                "name only one of them"
            )
