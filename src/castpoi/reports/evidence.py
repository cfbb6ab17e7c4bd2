"""The results in a folder, by city and row.

The folder may be that of a suite, one result, or any folder with results below it. Results with
equal splits belong to one city. Methods that are given the time of a target form a separate city,
because their numbers cannot be compared with those of other methods.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from castpoi.core.config import read_dataclass
from castpoi.core.errors import BadInput, BrokenFolder, did_you_mean
from castpoi.core.files import is_folder_of, read_json
from castpoi.evaluation.compare import Contender, with_equal_seeds
from castpoi.evaluation.metrics import Spread
from castpoi.evaluation.result import EXPERIMENT, RANKS, Result
from castpoi.methods.outline import ABLATION, ORACLE, OURS, RIVALS, Row, TableOutline
from castpoi.methods.run import LOG
from castpoi.reports.outlines import (
    OUR_METHODS,
    other_outlines,
    outlines_in,
    row_of_result,
    time_outlines,
    with_ours,
)

OUTDATED: Final = "outdated"
"""State of a result whose row was changed in the suite after the result was made."""
NOTES: Final = "notes.json"  # A file next to results: sentences about rows, which the report shows
_SUITE: Final = "suite.json"
_STARTED: Final = "started_utc"
_NOT_RESULTS: Final = ("runs", "logs")
_PLAIN_NAMES: Final = ("results", "res")  # folders that are not named after a city


@dataclass(frozen=True, kw_only=True)
class RowResult:
    """One result, the row that it belongs to, and how it was made."""

    folder: Path
    row: Row
    city: str
    result: Result
    is_outdated: bool = False  # the suite has changed its row since

    @property
    def is_by_time(self) -> bool:
        """Whether its city is split at a moment, the same for all users."""
        return self.result.manifest.get("split") == "chronological"

    @property
    def seed(self) -> int:
        """Seed of its training."""
        return self.result.seed

    @property
    def trained(self) -> dict[str, Any]:
        """The record of its training in the manifest."""
        return self.result.manifest.get("trained") or {}

    @property
    def config(self) -> Path:
        """The settings of its training: the copy of its config, or the manifest."""
        copied = self.folder / "run" / "config.json"
        return copied if copied.is_file() else self.folder / "manifest.json"

    @property
    def log(self) -> Path:
        """The log of its training; results of a run have a copy."""
        return self.folder / "run" / LOG

    @cached_property
    def _events(self) -> list[dict[str, Any]]:
        """The events of its training; empty without a log."""
        if not self.log.is_file():
            return []
        try:
            return [json.loads(line) for line in self.log.read_text("utf-8").splitlines()]
        except ValueError as problem:
            raise BrokenFolder(
                f"{self.log} is damaged ({problem}); remove it to report without training curves"
            ) from problem

    def _logged(self, event: str) -> list[dict[str, Any]]:
        return [each for each in self._events if each.get("event") == event]

    @cached_property
    def epochs(self) -> list[dict[str, Any]]:
        """The finished epochs of its training, in order; none for trees, which have no loss."""
        return [each for each in self._logged("epoch finished") if "loss" in each]

    @property
    def parameters(self) -> int | None:
        """Number of learned parameters."""
        return next((each.get("parameters") for each in self._logged("training started")), None)

    @property
    def commands(self) -> list[str]:
        """The commands that reproduce this result."""
        manifest = self.result.manifest
        commands = manifest.get(EXPERIMENT, {}).get("commands", [manifest.get("command")])
        return [str(command) for command in commands if command is not None]

    @property
    def training_seconds(self) -> float | None:
        """Duration of its training; None for a counting method."""
        return self.trained.get("wall_seconds") if self.row.is_learned else None

    @property
    def training(self) -> tuple[object, ...]:
        """Identity of its training: results of the same weights share it."""
        started = self.trained.get(_STARTED, str(self.folder))
        return self.result.fingerprint, self.result.method, self.seed, started


@dataclass(frozen=True, kw_only=True)
class CityEvidence:
    """All results on one split, of methods that are all given the time of a target or all not."""

    name: str
    town: str  # its name without the split
    fingerprint: str
    part: str
    known_time: bool
    results: tuple[RowResult, ...]

    @property
    def is_by_time(self) -> bool:
        """Whether it is split at a moment, the same for all users."""
        return self.results[0].is_by_time

    @property
    def slug(self) -> str:
        """Its name as part of a file name."""
        return _slug(self.name)

    @cached_property
    def contenders(self) -> dict[str, Contender]:
        """The results of each row by its name, lowest seed first."""
        return {
            row.name: Contender(
                row.name,
                tuple(each.result for each in self.of(row.name)),
                is_counted=not row.has_seeds,
            )
            for row in {each.row.name: each.row for each in self.results}.values()
        }

    def of(self, row: str) -> list[RowResult]:
        """The results of a row, lowest seed first."""
        own = (each for each in self.results if each.row.name == row)
        return sorted(own, key=lambda each: each.seed)

    def twin_of(self, run: RowResult) -> str:
        """The label of another row with the weights of a result; empty without one."""
        others = (each for each in self.results if each.row.name != run.row.name)
        return next((each.row.label for each in others if each.training == run.training), "")

    def spread(self, row: str, metric: str, stratum: str | None = None) -> Spread:
        """Mean and deviation of a metric over the seeds of a row."""
        return self.contenders[row].spread(metric, stratum)

    def mean(self, row: str, metric: str, stratum: str | None = None) -> float:
        """Mean of a metric over the seeds of a row."""
        return self.spread(row, metric, stratum).mean or 0.0

    def change(self, full: str, variant: str, metric: str) -> float:
        """A variant's metric minus the full model's, over equally many seeds of both."""
        one, other = with_equal_seeds(self.contenders[full], self.contenders[variant])
        return (other.spread(metric).mean or 0.0) - (one.spread(metric).mean or 0.0)

    def has(self, row: Row) -> bool:
        """Whether a row has a result here."""
        return row.name in self.contenders

    @property
    def targets(self) -> int:
        """Number of targets."""
        return self.results[0].result.ranks.height

    def count_of(self, things: str) -> int:
        """Number of users, places or check-ins."""
        return int(self.results[0].result.manifest[things])

    def strongest_of(self, rows: Sequence[Row], metric: str) -> Row | None:
        """The baseline with the highest mean among rows; None without baselines."""
        baselines = (row for row in rows if row.role in RIVALS and self.has(row))
        return max(baselines, key=lambda row: self.mean(row.name, metric), default=None)


def _slug(name: str) -> str:
    """A name as part of a file name or an anchor."""
    return re.sub(r"[^\w.]+", "-", name).strip("-")


def source_anchor(city: CityEvidence, row: Row) -> str:
    """Where a page lists the results of a row."""
    return f"source-{city.slug}-{_slug(row.name)}"


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Everything that a report is made from."""

    folder: Path
    tables: tuple[TableOutline, ...]
    cities: tuple[CityEvidence, ...]
    unfinished: Mapping[str, str]  # experiments of the suite without a result, and their state

    def notes_on(self, rows: Iterable[Row]) -> list[str]:
        """The sentences about rows, from NOTES."""
        path = self.folder / NOTES
        notes = read_json(path) if path.is_file() else {}
        return [f"{row.label}: {notes[row.name]}" for row in rows if row.name in notes]

    @property
    def results(self) -> list[RowResult]:
        """The results of all cities."""
        return [each for city in self.cities for each in city.results]

    @cached_property
    def rows(self) -> list[Row]:
        """The rows that have a result, each once, in the order of the tables."""
        present = {each.row.name for each in self.results}
        rows: dict[str, Row] = {}
        for row in (row for table in self.tables for row in table.rows):
            rows.setdefault(row.name, row)
        return [row for row in rows.values() if row.name in present]

    @cached_property
    def time_tables(self) -> tuple[TableOutline, ...]:
        """The tables of time splits, where there are other splits too."""
        by_time = [city for city in self.cities if city.is_by_time]
        present = {name for city in by_time for name in city.contenders}
        return time_outlines(self.tables, present) if len(by_time) < len(self.cities) else ()

    def cities_for(self, table: TableOutline) -> list[CityEvidence]:
        """The cities that a table may show; time splits have their own tables."""
        is_mixed, by_time = bool(self.time_tables), table in self.time_tables
        return [city for city in self.cities if not is_mixed or city.is_by_time == by_time]

    def rows_of(self, city: CityEvidence) -> list[Row]:
        """The rows that have a result on a city, without variants of our method and oracles."""
        present = [row for row in self.rows if city.has(row)]
        return [row for row in present if row.role not in (ABLATION, ORACLE)] or present

    def ours(self, city: CityEvidence) -> Row | None:
        """Our method, if it has a result on a city."""
        return next((row for row in self.rows_of(city) if row.role == OURS), None)

    def in_order(self, city: CityEvidence, metric: str) -> list[Row]:
        """The rows of a city in the order of a legend: ours, then the others, best first."""
        ours = self.ours(city)
        by_mean = sorted(self.rows_of(city), key=lambda row: -city.mean(row.name, metric))
        return sorted(by_mean, key=lambda row: row != ours)

    @property
    def splits(self) -> list[CityEvidence]:
        """The cities, each split once."""
        once: dict[tuple[str, str], CityEvidence] = {}
        for city in self.cities:
            once.setdefault((city.fingerprint, city.part), city)
        return list(once.values())

    def strongest(self, city: CityEvidence, metric: str) -> Row | None:
        """The strongest baseline of a city over all tables; None without baselines."""
        return city.strongest_of([row for table in self.tables for row in table.rows], metric)


def read_evidence(folder: Path, *, ours: Sequence[str] = ()) -> Evidence:
    """Read all results in and below a folder, and the suite that they belong to.

    With `ours`, names of methods or rows, the report is about these instead of those of the suite.
    """
    if not folder.is_dir():
        raise BrokenFolder(f"{folder} is not a folder; name one that holds results or a suite")
    suite = read_json(folder / _SUITE) if (folder / _SUITE).is_file() else {}
    tables = outlines_in(suite, path=str(folder / _SUITE)) if suite and not ours else []
    # an ablation labels our method "full model"; the other tables have its own label
    tables.sort(key=lambda table: table.is_ablation)
    rows = {row.name: row for table in reversed(tables) for row in table.rows}
    found = [read_result(path, rows) for path in _results_below(folder)]
    found = [replace(each, row=with_ours(each.row, ours)) for each in found]
    current = [each for each in found if not each.is_outdated]
    if not current:
        which = "no result of its suite as it is now" if found else "no result"
        raise BadInput(
            f"{folder} holds {which}; make some with 'castpoi evaluate' or 'castpoi reproduce'"
        )
    present = {each.row.name: each.row for each in current}
    names = {name for row in present.values() for name in (row.name, row.method)}
    if unknown := [name for name in ours if name not in names]:
        raise BadInput(
            f"{folder} has no result of {unknown[0]!r}; {did_you_mean(unknown[0], names)}it has "
            f"{', '.join(present)}"
        )
    tables += other_outlines(tables, [row for name, row in present.items() if name not in rows])
    outdated = {each.folder.relative_to(folder).as_posix() for each in found if each.is_outdated}
    return Evidence(
        folder=folder,
        tables=tuple(
            table for table in tables if present.keys() & {row.name for row in table.rows}
        ),
        cities=tuple(_cities(current, list(suite.get("cities", {})))),
        unfinished=_unfinished(suite, folder) | dict.fromkeys(sorted(outdated), OUTDATED),
    )


def read_result(path: Path, rows: Mapping[str, Row]) -> RowResult:
    """The result in a folder; `rows` are those of its suite by name."""
    result = Result.load(path)
    experiment = result.manifest.get(EXPERIMENT, {})
    named = rows.get(path.parent.name)  # in a suite: CITY/ROW/SEED
    is_outdated = False
    if experiment:
        recorded = read_dataclass(Row, experiment["row"])
        # the label of ours in an ablation makes no sense outside its suite
        alone = row_of_result(result) if recorded.method in OUR_METHODS else recorded
        row = rows.get(recorded.name, alone)
        is_outdated = recorded.name in rows and recorded.recipe != row.recipe
    elif named is not None and named.known_time == result.known_time:
        row = named
    else:
        row = row_of_result(result)
    holder = path.resolve().parents[1 if named is not None else 0]
    city = holder.parent.name if holder.name in _PLAIN_NAMES else holder.name
    return RowResult(
        folder=path,
        row=row,
        city=experiment.get("city") or city,
        result=result,
        is_outdated=is_outdated,
    )


def _results_below(folder: Path) -> Iterator[Path]:
    """The results in and below a folder, also damaged ones, which cannot be read later."""
    if is_folder_of(folder, "result") or (folder / RANKS).is_file():
        yield folder
        return
    for below in sorted(each for each in folder.iterdir() if each.is_dir()):
        is_left_out = below.name.startswith(".") or below.name in _NOT_RESULTS
        if not is_left_out and not (below / _SUITE).is_file():  # a suite has its own report
            yield from _results_below(below)


def _cities(results: Sequence[RowResult], order: Sequence[str]) -> Iterator[CityEvidence]:
    """The results by split, in the order of the suite, or the city with most results first."""
    names: dict[str, str] = {}
    groups: dict[tuple[str, str, bool], list[RowResult]] = {}
    sizes = Counter(each.city for each in results)

    def position(each: RowResult) -> tuple[bool, bool, int, int]:
        at = order.index(each.city) if each.city in order else len(order)
        return each.result.known_time, each.is_by_time, at, -sizes[each.city]

    for each in sorted(results, key=position):
        result = each.result
        names.setdefault(result.fingerprint, each.city)
        groups.setdefault((result.fingerprint, result.part, result.known_time), []).append(each)
    taken: set[str] = set()
    for (fingerprint, part, known_time), group in groups.items():
        traits = [*([] if part == "test" else [part]), *(["time known"] if known_time else [])]
        traits += ["time split"] if group[0].is_by_time else []
        name = f"{names[fingerprint]} ({', '.join(traits)})" if traits else names[fingerprint]
        name = f"{name} {fingerprint[:8]}" if name in taken else name
        taken.add(name)
        yield CityEvidence(
            name=name,
            town=names[fingerprint],
            fingerprint=fingerprint,
            part=part,
            known_time=known_time,
            results=tuple(group),
        )


def _unfinished(suite: Mapping[str, Any], folder: Path) -> dict[str, str]:
    """Experiments of a suite without a result, and their state."""
    return {
        name: f"{entry.get('state', 'waiting')}{': ' + entry['why'] if entry.get('why') else ''}"
        for name, entry in suite.get("experiments", {}).items()
        if entry.get("state") != "done" and not is_folder_of(folder / name, "result")
    }
