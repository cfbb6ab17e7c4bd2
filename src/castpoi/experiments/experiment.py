"""An experiment: one row of a suite on one city with one seed; it becomes one result."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from castpoi.checkins import record
from castpoi.core.errors import BadInput
from castpoi.core.files import read_manifest
from castpoi.evaluation.result import Result
from castpoi.experiments.suite import Suite
from castpoi.methods.outline import Row
from castpoi.methods.registry import METHODS, Method

COUNTED_SEED: Final = 0  # the only seed of a counting baseline: another one gives the same ranks
RUNS: Final = "runs"
LOGS: Final = "logs"  # next to the cities, so no city can have one of these two names


@dataclass(frozen=True, kw_only=True)
class CityFolder:
    """The folder of a city, and the entries of its manifest that a suite needs."""

    folder: Path
    fingerprint: str
    train_checkins: int

    @property
    def name(self) -> str:
        """Name of the folder; never `..`, which as part of a path leads out of --out."""
        whole = self.folder.resolve() if self.folder.name == ".." else self.folder.absolute()
        return whole.name

    @classmethod
    def at(cls, folder: Path) -> "CityFolder":
        """The city in a folder, by its manifest alone."""
        manifest = read_manifest(folder, kind="city", needs={"fingerprint", "train"})
        city = cls(
            folder=folder,
            fingerprint=str(manifest["fingerprint"]),
            train_checkins=int(manifest["train"]),
        )
        if city.name in (RUNS, LOGS):
            raise BadInput(
                f"{folder} cannot be named {city.name}, as every suite has a folder of that name; "
                "rename the city"
            )
        return city


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """One row on one city with one seed."""

    city: CityFolder
    row: Row
    seed: int
    part: str = record.TEST  # trials of `castpoi tune` predict validation and have no result

    @property
    def name(self) -> str:
        """City, row and seed, as `nyc/castpoi/42`; also the path of its folder."""
        return f"{self.city.name}/{self.row.name}/{self.seed}"

    @property
    def method(self) -> Method:
        """The method of its row."""
        return METHODS.named(self.row.method)

    @property
    def key(self) -> dict[str, Any]:
        """Everything that its numbers depend on: the same key, the same result."""
        return {
            "fingerprint": self.city.fingerprint,
            "method": self.row.method,
            "preset": self.row.preset,
            "settings": {**self.row.settings, **self.method.settings},
            "seed": self.seed,
            "code": code_of(self.method),
        }

    def training_words(self, run: str) -> list[str]:
        """The command that trains its row into a run folder."""
        words = ["castpoi", "train", str(self.city.folder), "--model", self.row.method]
        words += ["--seed", str(self.seed), "--out", str(run)]
        words += [] if self.row.preset is None else ["--preset", self.row.preset]
        for name, value in self.row.settings.items():
            words += ["--set", f"{name}={value}"]
        return words


def key_of(result: Result) -> dict[str, Any]:
    """The key of a result without a record of its experiment, such as one of `castpoi evaluate`."""
    row = result.manifest["row"]
    return {
        "fingerprint": result.fingerprint,
        "method": row["method"],
        "preset": row["preset"],
        "settings": row["settings"],
        "seed": result.seed,
    }


def changes(key: Mapping[str, Any], former: Mapping[str, Any], *, any_code: bool) -> list[str]:
    """The entries of a key that differ from those of an earlier one."""
    changed = [name for name, value in key.items() if former.get(name) != value]
    return [name for name in changed if name != "code" or not any_code]


def code_of(method: Method) -> int | str:
    """The version of a method; for one of another package a digest of that package's files."""
    references = [method.ranker, *([method.trainer] if method.trainer else [])]
    packages = {each.partition(":")[0].partition(".")[0] for each in references} - {"castpoi"}
    if not packages:
        return method.version
    digest = hashlib.sha256(str(method.version).encode())
    for path in (path for package in sorted(packages) for path in _sources_of(package)):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def _sources_of(package: str) -> list[Path]:
    """The Python files of an installed package, or its only one."""
    spec = find_spec(package)
    if spec is None:
        return []
    if spec.submodule_search_locations:
        return sorted(Path(next(iter(spec.submodule_search_locations))).rglob("*.py"))
    return [Path(spec.origin)] if spec.has_location and spec.origin else []


def experiments_of(
    suite: Suite, cities: Sequence[CityFolder], seeds: Sequence[int] = (), only: Sequence[str] = ()
) -> list[Experiment]:
    """All experiments of a suite: the first seed of every row first, so that tables fill early.

    `seeds` replace those of the suite.
    """
    _check_each_once(cities)
    names = [row.name for row in suite.rows]
    unknown = next((name for name in only if name not in names), None)
    if unknown is not None:
        raise BadInput(
            f"the suite {suite.name} has no row '{unknown}'; its rows are {', '.join(names)}"
        )
    rows = [row for row in suite.rows if row.name in only or not only]
    seeds_of = {
        row.name: (seeds or suite.row_seeds.get(row.name, suite.seeds))
        if row.is_learned
        else (COUNTED_SEED,)
        for row in rows
    }
    return [
        Experiment(city=city, row=row, seed=seeds_of[row.name][number])
        for number in range(max(map(len, seeds_of.values()), default=0))
        for city in cities
        for row in rows
        if number < len(seeds_of[row.name])
    ]


def _check_each_once(cities: Sequence[CityFolder]) -> None:
    """Refuse two cities of one name, whose results would mix, and one city under two names."""
    names: set[str] = set()
    folders: dict[str, Path] = {}
    for city in cities:
        if city.name in names:
            raise BadInput(
                f"two cities are named {city.name}; name each once, or rename one of the folders"
            )
        names.add(city.name)
        other = folders.setdefault(city.fingerprint, city.folder)
        if other != city.folder:
            raise BadInput(
                f"{other} and {city.folder} are one city (fingerprint {city.fingerprint[:12]}); "
                "name only one of them"
            )
