"""The evidence in a folder: results by city and row, and the papers that belong to them.

DIR may be the folder of a suite, one result, or any folder with results somewhere below it.
Results of one split and part belong to one city. A result of a row that is another one in the suite
by now counts as if not there.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from castpoi.core.errors import BadInput, BrokenFolder
from castpoi.core.files import is_folder_of, read_json
from castpoi.evaluation.compare import Contender, with_equal_seeds
from castpoi.evaluation.result import RANKS
from castpoi.methods.outline import (
    ABLATION,
    ORACLE,
    OURS,
    RIVALS,
    Row,
    TableOutline,
)
from castpoi.reports.finding import Finding, find
from castpoi.reports.outline import outlines_in, outlines_of

OUTDATED: Final = "outdated"
"""How an experiment stands whose row was changed after it was run."""

_SUITE: Final = "suite.json"
_NOT_RESULTS: Final = ("runs", "logs")


@dataclass(frozen=True, kw_only=True)
class CityEvidence:
    """All results of one split and part whose methods know the time of a target, or do not."""

    name: str
    fingerprint: str
    part: str
    known_time: bool
    findings: tuple[Finding, ...]

    @property
    def slug(self) -> str:
        """Its name as part of a file's name: no blanks and no brackets."""
        return re.sub(r"[^\w.]+", "-", self.name).strip("-")

    @cached_property
    def contenders(self) -> dict[str, Contender]:
        """By name of the row: its results, lowest seed first."""
        return {
            row.name: Contender(
                row.name,
                tuple(finding.result for finding in self.of(row.name)),
                is_counted=not row.is_learned,
            )
            for row in {finding.row.name: finding.row for finding in self.findings}.values()
        }

    def of(self, row: str) -> list[Finding]:
        """What was found of a row, lowest seed first."""
        own = (finding for finding in self.findings if finding.row.name == row)
        return sorted(own, key=lambda finding: finding.seed)

    @property
    def targets(self) -> int:
        """Number of targets."""
        return self.findings[0].result.ranks.height

    @property
    def places(self) -> int:
        """Size of the vocabulary."""
        return self.findings[0].result.places

    @property
    def users(self) -> int:
        """Number of users."""
        return int(self.findings[0].result.manifest["users"])

    @property
    def checkins(self) -> int:
        """Number of check-ins."""
        return int(self.findings[0].result.manifest["checkins"])


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Everything a report is made from."""

    folder: Path
    tables: tuple[TableOutline, ...]
    cities: tuple[CityEvidence, ...]
    unfinished: dict[str, str]
    """Experiments of the suite that have no result, and how they stand."""

    @property
    def findings(self) -> list[Finding]:
        """The results of all cities."""
        return [finding for city in self.cities for finding in city.findings]

    @property
    def rows(self) -> list[Row]:
        """The rows that have a result, each once, in the order of the tables."""
        present = {finding.row.name for finding in self.findings}
        rows: dict[str, Row] = {}
        for row in (row for table in self.tables for row in table.rows):
            rows.setdefault(row.name, row)
        return [row for row in rows.values() if row.name in present]

    def rows_of(self, city: CityEvidence) -> list[Row]:
        """The rows that have a result on a city, variants of our method and oracles left out."""
        present = [row for row in self.rows if row.name in city.contenders]
        return [row for row in present if row.role not in (ABLATION, ORACLE)] or present

    def ours(self, city: CityEvidence) -> Row | None:
        """The row this report is about, if it has a result on a city."""
        return next((row for row in self.rows_of(city) if row.role == OURS), None)

    @property
    def splits(self) -> list[CityEvidence]:
        """The cities, each split and part once, whatever its methods were told."""
        once: dict[tuple[str, str], CityEvidence] = {}
        for city in self.cities:
            once.setdefault((city.fingerprint, city.part), city)
        return list(once.values())

    def strongest_rival(self, city: CityEvidence, metric: str) -> Row | None:
        """The strongest of all tables of a city; None where there is no other method."""
        found = (strongest_rival(table, city, metric) for table in self.tables)
        return _strongest([row for row in found if row is not None], city, metric)

    def main_table(self, city: CityEvidence) -> TableOutline | None:
        """The first table that sets our method beside others on a city."""
        return next((table for table in self.tables if rivals_on(table, city)), None)


def mean_of(contender: Contender, metric: str) -> float:
    """Mean of a metric over the seeds."""
    values = (result.metrics[metric] for result in contender.results)
    return fmean(value for value in values if value is not None)


def change_between(city: CityEvidence, full: str, variant: str, metric: str) -> float:
    """What a variant has more than the full model, over equally many seeds of both."""
    one, other = with_equal_seeds(city.contenders[full], city.contenders[variant])
    return mean_of(other, metric) - mean_of(one, metric)


def rivals_on(table: TableOutline, city: CityEvidence) -> list[Row]:
    """The rows of other methods in a table that have a result on a city."""
    return [row for row in table.rows if row.role in RIVALS and row.name in city.contenders]


def lacks_rivals(table: TableOutline, city: CityEvidence) -> bool:
    """Whether other methods of a table have no result on a city."""
    return len(rivals_on(table, city)) < sum(row.role in RIVALS for row in table.rows)


def strongest_rival(table: TableOutline, city: CityEvidence, metric: str) -> Row | None:
    """The row of another method with the highest mean; None where there is no other method."""
    return _strongest(rivals_on(table, city), city, metric)


def _strongest(rows: Sequence[Row], city: CityEvidence, metric: str) -> Row | None:
    return max(rows, key=lambda row: mean_of(city.contenders[row.name], metric), default=None)


def read_evidence(folder: Path) -> Evidence:
    """Read all results in and below a folder, and what a suite says about them."""
    if not folder.is_dir():
        raise BrokenFolder(f"{folder} is not a folder; name one that holds results or a suite")
    suite = read_json(folder / _SUITE) if (folder / _SUITE).is_file() else {}
    # an ablation calls our method the full model: elsewhere it has its own name
    tables = outlines_in(suite, path=str(folder / _SUITE)) if suite else []
    tables.sort(key=lambda table: table.is_ablation)
    rows = {row.name: row for table in reversed(tables) for row in table.rows}
    found = [find(path, rows) for path in _results_below(folder)]
    findings = [finding for finding in found if not finding.is_outdated]
    if not findings:
        which = "no result of its suite as it is now" if found else "no result"
        raise BadInput(
            f"{folder} holds {which}; make some with 'castpoi evaluate' or 'castpoi reproduce'"
        )
    present = {finding.row.name: finding.row for finding in findings}
    tables += _other_tables(tables, [row for name, row in present.items() if name not in rows])
    return Evidence(
        folder=folder,
        tables=tuple(
            table for table in tables if present.keys() & {row.name for row in table.rows}
        ),
        cities=tuple(_cities(findings, list(suite.get("cities", {})))),
        unfinished=_unfinished(suite, folder) | _outdated(found, folder),
    )


def _other_tables(tables: Sequence[TableOutline], rows: Sequence[Row]) -> list[TableOutline]:
    """Tables for rows that no table of the suite names."""
    taken = {table.name for table in tables}
    return [
        replace(table, name=f"other-{table.name}", title=f"{table.title}, others")
        if table.name in taken
        else table
        for table in (outlines_of(rows) if rows else [])
    ]


def _results_below(folder: Path) -> Iterator[Path]:
    """The results in and below a folder, also torn ones: whoever reads them is told."""
    if is_folder_of(folder, "result") or (folder / RANKS).is_file():
        yield folder
        return
    for below in sorted(each for each in folder.iterdir() if each.is_dir()):
        is_left_out = below.name.startswith(".") or below.name in _NOT_RESULTS
        if not is_left_out and not (below / _SUITE).is_file():  # a suite has a page of its own
            yield from _results_below(below)


def _cities(findings: Sequence[Finding], order: Sequence[str]) -> Iterator[CityEvidence]:
    """The findings by split and part, cities in the order in which the suite has them.

    Without a suite the city with most results comes first. Whoever was told when a target was
    stands apart, as if in another city, behind all others.
    """
    groups: dict[tuple[str, str, bool], list[Finding]] = {}
    names: dict[str, str] = {}

    results = Counter(finding.result.fingerprint for finding in findings)

    def standing(each: Finding) -> tuple[bool, int, int]:
        at = order.index(each.city) if each.city in order else len(order)
        return each.result.known_time, at, -results[each.result.fingerprint]

    for finding in sorted(findings, key=standing):
        result = finding.result
        names.setdefault(result.fingerprint, finding.city)
        key = (result.fingerprint, result.part, result.known_time)
        groups.setdefault(key, []).append(finding)
    taken: set[str] = set()
    for (fingerprint, part, known_time), group in groups.items():
        traits = [*([] if part == "test" else [part]), *(["time known"] if known_time else [])]
        name = f"{names[fingerprint]} ({', '.join(traits)})" if traits else names[fingerprint]
        name = f"{name} {fingerprint[:8]}" if name in taken else name
        taken.add(name)
        yield CityEvidence(
            name=name,
            fingerprint=fingerprint,
            part=part,
            known_time=known_time,
            findings=tuple(group),
        )


def _unfinished(suite: dict[str, Any], folder: Path) -> dict[str, str]:
    experiments = suite.get("experiments", {})
    return {
        name: f"{entry.get('state', 'waiting')}{': ' + entry['why'] if entry.get('why') else ''}"
        for name, entry in experiments.items()
        if entry.get("state") != "done" and not is_folder_of(folder / name, "result")
    }


def _outdated(found: Sequence[Finding], folder: Path) -> dict[str, str]:
    """Results of rows that are otherwise in the suite by now, which count as if not there."""
    return {
        finding.folder.relative_to(folder).as_posix(): OUTDATED
        for finding in found
        if finding.is_outdated
    }
