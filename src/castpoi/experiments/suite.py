"""Suites: TOML files that name rows, tests, seeds and cities; errors name the file and the key.

docs/reproduce.md shows one; the suites that come with castpoi are in `suites/`.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal

from castpoi.core.config import Seed, read_dataclass, text_of
from castpoi.core.errors import BadInput, UnknownMethod, did_you_mean
from castpoi.evaluation.metrics import METRICS
from castpoi.methods.outline import RIVALS, STRONGEST, Against, Family, Row, TableOutline, Together
from castpoi.methods.registry import METHODS, Method

DEFAULT_SEEDS: Final = (42, 43, 44)  # the seeds of the paper

_BUILT_IN: Final = Path(__file__).with_name("suites")
_FOLDER_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, kw_only=True)
class Suite:
    """Tables that are made together, and the seeds and cities to make them with."""

    name: str
    tables: tuple[TableOutline, ...]
    seeds: tuple[int, ...] = DEFAULT_SEEDS
    cities: tuple[str, ...] = ()  # folders, for a command that names none
    row_seeds: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # of rows with their own

    def __post_init__(self) -> None:
        if not self.rows:
            raise BadInput(f"the suite {self.name} has no row; add at least one, or an include")
        by_label: dict[str, str] = {}
        for row in self.rows:
            if (other := by_label.setdefault(row.label, row.name)) != row.name:
                raise BadInput(
                    f"the rows {other} and {row.name} of the suite {self.name} are both labelled "
                    f"{row.label!r}; give each its own label"
                )

    @cached_property
    def rows(self) -> list[Row]:
        """The rows of all tables, each once."""
        rows: dict[str, Row] = {}
        for row in (row for table in self.tables for row in table.rows):
            if rows.setdefault(row.name, row).recipe != row.recipe:
                raise BadInput(
                    f"the suite {self.name} has two rows named {row.name} with different methods "
                    "or settings; rename one, since a row's name is the name of its folder"
                )
        return list(rows.values())


@dataclass(frozen=True, kw_only=True)
class _RowTable:
    label: str
    method: str
    role: Literal["ours", "baseline", "heuristic", "ablation"]
    preset: str | None = None
    seeds: tuple[Seed, ...] = ()  # instead of those of the suite
    set: dict[str, bool | int | float | str | tuple[int | float | str, ...]] = field(
        default_factory=dict
    )


@dataclass(frozen=True, kw_only=True)
class _FamilyTable:
    row: str
    together: Together
    against: Literal["strongest baseline"] | tuple[str, ...]
    metrics: tuple[str, ...] = tuple(METRICS)


@dataclass(frozen=True, kw_only=True)
class _SuiteFile:
    title: str = ""
    seeds: tuple[Seed, ...] = DEFAULT_SEEDS
    cities: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    rows: dict[str, _RowTable] = field(default_factory=dict)
    families: dict[str, _FamilyTable] = field(default_factory=dict)


def suite_names() -> list[str]:
    """The suites that come with castpoi."""
    return sorted(path.stem for path in _BUILT_IN.glob("*.toml"))


def read_suite(name: str) -> Suite:
    """A suite by its name, or from a file."""
    return _read(_file_of(name, beside=Path()), including=())


def _file_of(name: str, *, beside: Path) -> Path:
    if name in suite_names():
        return _BUILT_IN / f"{name}.toml"
    path = beside / name
    if path.is_file():
        return path
    raise BadInput(
        f"no suite is named '{name}' and there is no such file; {did_you_mean(name, suite_names())}"
        f"the suites are {', '.join(suite_names())}, or name a TOML file"
    )


def _read(file: Path, *, including: tuple[Path, ...]) -> Suite:
    if file.resolve() in including:
        raise BadInput(f"{file} includes itself; remove it from 'include'")
    content = read_dataclass(_SuiteFile, _toml(file), at=f"{file}: ")
    included = [
        _read(_file_of(other, beside=file.parent), including=(*including, file.resolve()))
        for other in content.include
    ]
    tables = [table for suite in included for table in suite.tables]
    if content.rows or content.families:
        tables.append(_table(file, content))
    by_name: dict[str, TableOutline] = {}
    for table in tables:
        if by_name.setdefault(table.name, table) != table:
            raise BadInput(f"{file} has two tables named {table.name}; rename one of the files")
    return Suite(
        name=file.stem,
        tables=tuple(by_name.values()),
        seeds=content.seeds or DEFAULT_SEEDS,
        cities=tuple(str(file.parent / city) for city in content.cities),
        row_seeds={name: seeds for suite in included for name, seeds in suite.row_seeds.items()}
        | {name: row.seeds for name, row in content.rows.items() if row.seeds},
    )


def _toml(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except OSError as problem:
        raise BadInput(
            f"{file} cannot be read: {problem.strerror}; choose another file"
        ) from problem
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise BadInput(
            f"{file} is not valid TOML: {problem}; docs/reproduce.md shows a suite"
        ) from problem


def _table(file: Path, content: _SuiteFile) -> TableOutline:
    if not content.rows:
        raise BadInput(
            f"{file}: families are about rows of the same file, and it has none; add the rows that "
            "they test, as the suites that are included do"
        )
    if not content.title.strip():
        raise BadInput(f"{file}: title is missing; it must be a text")
    rows = {name: _row(f"{file}: rows.{name}", name, row) for name, row in content.rows.items()}
    known = [row.name for row in rows.values() if row.known_time]
    if known and len(known) < len(rows):
        raise BadInput(
            f"{file}: rows.{known[0]} gets the time of a target (known_time=true) and others do "
            "not, so they cannot share a table; give it a suite of its own, and 'include' that"
        )
    families = {
        name: _family(f"{file}: families.{name}", name, family, rows)
        for name, family in content.families.items()
    }
    return TableOutline(
        name=file.stem,
        title=content.title,
        rows=tuple(rows.values()),
        families=tuple(families.values()),
    )


def _row(at: str, name: str, table: _RowTable) -> Row:
    if not _FOLDER_NAME.fullmatch(name):
        raise BadInput(f"{at} is not a folder name; use letters, digits, '-', '_' and '.'")
    try:
        method = METHODS.named(table.method)
    except UnknownMethod as problem:
        raise UnknownMethod(f"{at}.method: {problem}") from problem
    method.check_preset(table.preset, where=f"{at}.preset: ")
    preset = table.preset or method.default_preset
    settings = {setting: text_of(value) for setting, value in table.set.items()}
    _check_settings(f"{at}.set: ", method, preset, settings)
    return Row(
        name=name,
        label=table.label,
        method=method.name,
        role=table.role,
        preset=preset,
        settings=settings,
    )


def _check_settings(
    at: str, method: Method, preset: str | None, settings: Mapping[str, str]
) -> None:
    """Refuse settings that cannot be trained; those of another package are not known here."""
    if settings and not method.needs_training:
        raise BadInput(
            f"{at}{method.name} is counted, not learned, so it has nothing to set; leave it out"
        )
    method.check_free(settings, where=at)
    if not settings or preset is None or not method.is_ours:
        return
    from castpoi.training.train import configs_for  # needs torch; suites without settings do not

    try:
        configs_for(method, preset, settings)
    except BadInput as problem:
        raise BadInput(f"{at}{problem}") from problem


def _family(at: str, name: str, table: _FamilyTable, rows: Mapping[str, Row]) -> Family:
    wrong = next((metric for metric in table.metrics if metric not in METRICS), None)
    if wrong is not None:
        raise BadInput(f"{at}.metrics contains {wrong!r}; choose from {', '.join(METRICS)}")
    if table.row not in rows:
        raise BadInput(f"{at}.row is {table.row!r}; choose {' or '.join(rows)}")
    _check_against(at, table.row, table.against, rows)
    return Family(name=name, **vars(table))


def _check_against(at: str, row: str, against: Against, rows: Mapping[str, Row]) -> None:
    if against == STRONGEST:
        if not any(each.role in RIVALS for each in rows.values()):
            raise BadInput(
                f"{at}.against is {STRONGEST!r}, but no row here has the role baseline or "
                "heuristic; name rows instead"
            )
        if rows[row].role in RIVALS:
            raise BadInput(
                f"{at}.against is {STRONGEST!r}, and by its role {row} may be that itself; name "
                "rows instead"
            )
        return
    others = [name for name in rows if name != row]
    wrong = next((name for name in against if name not in others), None)
    if not against or wrong is not None:
        fault = "names no row" if wrong is None else f"contains {wrong!r}"
        raise BadInput(
            f"{at}.against {fault}; give {STRONGEST!r} or a list of other rows of this file: "
            f"{', '.join(others)}"
        )
