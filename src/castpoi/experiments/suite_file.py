"""Suites as files: TOML that a person can write, read with errors that name file, row and key.

docs/reproduce.md shows one; the suites that come with castpoi are in `suites/`.
"""

import difflib
import re
import tomllib
from pathlib import Path
from typing import Any, Final, cast, get_args

from castpoi.core.errors import BadInput, UnknownMethod
from castpoi.evaluation.metrics import METRICS
from castpoi.experiments.section import Section
from castpoi.experiments.suite import DEFAULT_SEEDS, LARGEST_SEED, Suite
from castpoi.methods.outline import (
    ORACLE,
    RIVALS,
    STRONGEST,
    Against,
    Family,
    Role,
    Row,
    TableOutline,
    Together,
)
from castpoi.methods.registry import METHODS, Method

_BUILT_IN: Final = Path(__file__).with_name("suites")
_FOLDER_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

_SUITE_KEYS: Final = ("title", "seeds", "cities", "include", "rows", "families")
_ROLES: Final = tuple(role for role in get_args(Role) if role != ORACLE)
_ROW_KEYS: Final = ("label", "method", "preset", "role", "set")
_FAMILY_KEYS: Final = ("row", "against", "metrics", "together")


def suite_names() -> list[str]:
    """The suites that come with castpoi."""
    return sorted(path.stem for path in _BUILT_IN.glob("*.toml"))


def read_suite(wanted: str) -> Suite:
    """A suite by its name, or from a file."""
    return _read(_file_of(wanted, beside=Path()), above=())


def _file_of(wanted: str, *, beside: Path) -> Path:
    if wanted in suite_names():
        return _BUILT_IN / f"{wanted}.toml"
    path = beside / wanted
    if path.is_file():
        return path
    close = difflib.get_close_matches(wanted, suite_names(), n=1)
    guess = f"did you mean '{close[0]}'? " if close else ""
    raise BadInput(
        f"no suite is named '{wanted}' and no such file is there; {guess}the suites are "
        f"{', '.join(suite_names())}, or name a TOML file"
    )


def _read(file: Path, *, above: tuple[Path, ...]) -> Suite:
    if file.resolve() in above:
        raise BadInput(f"{file} includes itself; take it out of 'include'")
    content = Section(file, _toml(file), keys=_SUITE_KEYS)
    included = [
        _read(_file_of(other, beside=file.parent), above=(*above, file.resolve()))
        for other in content.texts("include")
    ]
    tables = [table for suite in included for table in suite.tables]
    if "rows" in content or "families" in content:
        tables.append(_table(file, content))
    return Suite(
        name=file.stem,
        tables=_each_once(file, tables),
        seeds=content.whole_numbers("seeds", most=LARGEST_SEED) or DEFAULT_SEEDS,
        cities=tuple(str(file.parent / city) for city in content.texts("cities")),
    )


def _each_once(file: Path, tables: list[TableOutline]) -> tuple[TableOutline, ...]:
    """The tables without repetitions; two different ones of a name are refused."""
    by_name: dict[str, TableOutline] = {}
    for table in tables:
        if by_name.setdefault(table.name, table) != table:
            raise BadInput(f"{file} has two tables named {table.name}; rename one of the files")
    return tuple(by_name.values())


def _toml(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except OSError as problem:
        raise BadInput(f"{file} cannot be read: {problem.strerror}; name another") from problem
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise BadInput(
            f"{file} is not valid TOML: {problem}; docs/reproduce.md shows a suite"
        ) from problem


def _table(file: Path, content: Section) -> TableOutline:
    rows = tuple(_row(name, row) for name, row in content.sections("rows", keys=_ROW_KEYS).items())
    told = [row.name for row in rows if row.known_time]
    if told and len(told) < len(rows):
        raise BadInput(
            f"{file}: rows.{told[0]} knows the time of a target (known_time=true) and others do "
            "not, so they do not stand in one table; give it a suite of its own, and 'include' it"
        )
    families = content.sections("families", keys=_FAMILY_KEYS)
    if families and not rows:
        raise BadInput(
            f"{content.at('families')} are of rows of this file, and it has none; name here the "
            "rows they test, as the suites that are included do"
        )
    return TableOutline(
        name=file.stem,
        title=content.text("title"),
        rows=rows,
        families=tuple(_family(name, family, rows) for name, family in families.items()),
    )


def _row(name: str, content: Section) -> Row:
    if not _FOLDER_NAME.fullmatch(name):
        raise BadInput(
            f"{content.file}: {content.name} cannot be the name of a folder; use letters, digits, "
            "'-', '_' and '.'"
        )
    wanted = content.text("method")
    try:
        method = METHODS.named(wanted)
    except UnknownMethod as problem:
        raise UnknownMethod(f"{content.at('method')}: {problem}") from problem
    preset, settings = _preset(content, method), content.settings("set")
    _check_settings(content, method, preset, settings)
    return Row(
        name=name,
        label=content.text("label"),
        method=method.name,
        role=cast(Role, content.choice("role", _ROLES)),
        preset=preset,
        settings=settings,
    )


def _check_settings(
    content: Section, method: Method, preset: str | None, settings: dict[str, str]
) -> None:
    """Refuse what no training would take; the settings of another package only that knows."""
    if settings and not method.needs_training:
        raise BadInput(
            f"{content.at('set')}: {method.name} is counted, not learned, so it has nothing to "
            "set; leave it out"
        )
    method.check_free(settings, where=f"{content.at('set')}: ")
    if not settings or preset is None or not method.is_ours:
        return
    from castpoi.training.train import configs_for  # it needs torch, and a plan without is quick

    try:
        configs_for(method, preset, settings)
    except BadInput as problem:
        raise BadInput(f"{content.at('set')}: {problem}") from problem


def _preset(content: Section, method: Method) -> str | None:
    """The preset a row names, or the default of its method."""
    if "preset" not in content:
        return method.default_preset
    if not method.presets:
        raise BadInput(f"{content.at('preset')}: {method.name} has no presets; leave it out")
    return content.choice("preset", method.presets)


def _family(name: str, content: Section, rows: tuple[Row, ...]) -> Family:
    metrics = content.texts("metrics") or tuple(METRICS)
    wrong = next((metric for metric in metrics if metric not in METRICS), None)
    if wrong is not None:
        raise BadInput(f"{content.at('metrics')} holds {wrong!r}; choose of {', '.join(METRICS)}")
    row = content.choice("row", [each.name for each in rows])
    return Family(
        name=name,
        row=row,
        against=_against(content, row, rows),
        metrics=metrics,
        together=cast(Together, content.choice("together", get_args(Together))),
    )


def _against(content: Section, row: str, rows: tuple[Row, ...]) -> Against:
    """The rows that a row is tested against, or the strongest baseline."""
    if content.has_text("against"):
        content.choice("against", [STRONGEST])
        if not any(each.role == "baseline" for each in rows):
            raise BadInput(
                f"{content.at('against')} is {STRONGEST!r}, but no row here has the role baseline; "
                "name rows instead"
            )
        if next(each for each in rows if each.name == row).role in RIVALS:
            raise BadInput(
                f"{content.at('against')} is {STRONGEST!r}, which {row} may be itself by its role; "
                "name rows instead"
            )
        return STRONGEST
    others = [each.name for each in rows if each.name != row]
    against = content.texts("against")
    wrong = next((each for each in against if each not in others), None)
    if not against or wrong is not None:
        state = "names no row" if wrong is None else f"holds {wrong!r}"
        raise BadInput(
            f"{content.at('against')} {state}; give {STRONGEST!r} or a list of other rows of this "
            f"file: {', '.join(others)}"
        )
    return against
