"""The tables of a report: those of a suite, or tables made from the rows of the results.

A result records its row: method, preset and settings. Without a suite, `castpoi` and
`castpoi-next` are our methods; their runs with other settings are variants, all other learned
methods are baselines, counting methods are heuristics.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal

from castpoi.core.errors import BadInput, BrokenFolder
from castpoi.evaluation.metrics import METRICS
from castpoi.evaluation.result import Result
from castpoi.methods.outline import (
    ABLATION,
    KNOWN_TIME,
    ORACLE,
    OURS,
    RIVALS,
    STRONGEST,
    Family,
    Row,
    TableOutline,
)
from castpoi.methods.registry import METHODS

HEADLINE: Final = ("HR@5", "HR@10", "NDCG@5", "NDCG@10", "MRR")  # the metrics of the paper's tables
PAPERS_METHOD: Final = "castpoi"
PAPERS_VARIANTS: Final = (
    "no-temporal-bias",
    "no-spatial-bias",
    "no-candidate-conditioning",
    "no-revisit-gate",
    "no-backbone",
)
"""The variants of the paper's ablation, as the suite `ablation` names them."""
OUR_METHODS: Final = (PAPERS_METHOD, "castpoi-next", "castpoi-trees")
_OTHER_SETTINGS: Final = "settings-"
_RECBOLE: Final = "recbole-"


def outlines_in(suite: Mapping[str, Any], *, path: str) -> list[TableOutline]:
    """The tables of the suite.json at `path`."""
    found = suite.get("tables")
    try:
        if not isinstance(found, dict):
            raise BadInput("tables is missing; it must be a table")
        tables = [TableOutline.from_dict(name, each) for name, each in found.items()]
        families = [family for table in tables for family in table.families]
        metrics = {metric for family in families for metric in family.metrics}
        if unknown := sorted(metrics - set(METRICS)):
            raise BadInput(f"no metric is named {unknown[0]}")
    except (BadInput, TypeError) as problem:
        raise BrokenFolder(
            f"{path} is not a file of 'castpoi reproduce' ({problem}); give that command again"
        ) from problem
    return tables


def row_of_result(result: Result) -> Row:
    """The row of a result without a suite, from the recipe in its manifest."""
    recorded = result.manifest["row"]
    method, settings = str(recorded["method"]), dict(recorded["settings"])
    if "oracle" in result.manifest:  # written by tools/recbole_oracle.py
        copied = METHODS.label_of(method.removeprefix(_RECBOLE))
        label = f"RecBole's {copied}" if method.startswith(_RECBOLE) else method
        return Row(name=method, label=label, method=method, role=ORACLE)
    timed = {KNOWN_TIME: "true"} if result.known_time else {}
    return row_of_run(method, recorded["preset"], settings | timed)


def row_of_run(
    method: str, preset: str | None = None, settings: Mapping[str, str] | None = None
) -> Row:
    """The row of a method with a preset and settings."""
    known = METHODS.find(method)
    is_default = preset in (None, known.default_preset if known else None)
    changes = {**({} if is_default else {"preset": str(preset)}), **(settings or {})}
    words = ", ".join(_change(name, value) for name, value in changes.items())
    space = "" if not words else " " if words.startswith("w/o") else ", "
    row = Row(
        name=_variant_name(method, changes),
        label=f"{METHODS.label_of(method)}{space}{words}",
        method=method,
        role="baseline",
        preset=preset,
        settings=changes,
    )
    if method not in OUR_METHODS:
        return row if row.is_learned else replace(row, role="heuristic")
    return replace(row, role=ABLATION if changes and not row.known_time else OURS)


def with_ours(row: Row, ours: Collection[str]) -> Row:
    """The row in a report about methods or rows of these names: all others are rivals."""
    if not ours or row.role == ORACLE:
        return row
    if row.name in ours or row.method in ours:
        return replace(row, role=OURS)
    return replace(row, role="baseline" if row.is_learned else "heuristic")


def _change(name: str, value: str) -> str:
    """A changed setting in a few words."""
    if name in (KNOWN_TIME, "preset"):
        return "time known" if name == KNOWN_TIME else f"preset {value}"
    words = name.replace("_", " ")
    return f"w/o {words}" if value == "false" else f"{words} = {value}"


def _variant_name(method: str, changes: Mapping[str, str]) -> str:
    """Name of a variant, for the paper's method as in the paper's ablation."""
    if method == PAPERS_METHOD and list(changes.values()) == ["false"]:
        return f"no-{next(iter(changes)).replace('_', '-')}"
    return "-".join([method, *(f"{name}={value}" for name, value in changes.items())])


def is_not_paper_preset(row: Row) -> bool:
    """Whether a row is the paper's method, trained with another preset than the paper's."""
    return row.method == PAPERS_METHOD and row.preset not in (None, "paper")


def is_of_other_settings(table: TableOutline) -> bool:
    """Whether a table has settings that were tried on some cities only."""
    return table.name.startswith(_OTHER_SETTINGS)


def outlines_of(rows: Sequence[Row]) -> list[TableOutline]:
    """A main table, tables of variants, and tables of known time and of oracles."""
    timed = [row for row in rows if row.known_time]
    oracles = [row for row in rows if row.role == ORACLE]
    others = [row for row in rows if not row.known_time and row.role != ORACLE]
    tables = _outlines_of_untimed(others) if others else []
    if timed:
        tables.append(_outline("known-time", "Known time", timed))
    if oracles:
        copied = {row.method.removeprefix(_RECBOLE) for row in oracles}
        copies = [row for row in others if row.name in copied]
        tables.append(_outline("oracles", "Oracles of our copies", [*copies, *oracles]))
    return tables


def other_outlines(tables: Sequence[TableOutline], rows: Sequence[Row]) -> list[TableOutline]:
    """Tables for rows that no table of the suite has."""
    taken = {table.name for table in tables}
    return [
        replace(table, name=f"other-{table.name}", title=f"{table.title}, others")
        if table.name in taken
        else table
        for table in outlines_of(rows)
    ]


def time_outlines(
    tables: Sequence[TableOutline], present: Collection[str]
) -> tuple[TableOutline, ...]:
    """The tables of methods again, with the rows that have a result on a time split."""
    again = []
    for table in (each for each in tables if not each.is_ablation):
        rows = tuple(row for row in table.rows if row.name in present)
        if any(row.role in RIVALS for row in rows):
            title = "Global time split" if table.name == "main" else f"{table.title}, time split"
            again.append(replace(table, name=f"time-{table.name}", title=title, rows=rows))
    return tuple(again)


def _outlines_of_untimed(rows: Sequence[Row]) -> list[TableOutline]:
    ours = [row for row in rows if row.role == OURS]
    baselines = [row for row in rows if row.role in RIVALS]
    variants = [row for row in rows if row.role == ABLATION]
    tables = []
    if baselines or not variants:
        families = [_family("improvement", row, STRONGEST) for row in ours]
        newest = max(ours, key=_rank_among_ours, default=None)
        if newest is not None and len(ours) > 1:
            older = [row for row in ours if row != newest]
            families.append(_family("difference", newest, older))
        tables.append(_outline("main", "Main table", [*baselines, *ours], families))
    for method in dict.fromkeys(row.method for row in variants):
        # a baseline with variants is the full model of its table
        full = [replace(row, role=OURS) for row in [*ours, *baselines] if row.name == method]
        own = [row for row in variants if row.method == method]
        parts = [row for row in own if _is_of_ablation(row)]
        others = [row for row in own if row not in parts]
        label = METHODS.label_of(method)
        for name, title, some in (
            (f"ablation-{method}", f"Ablation of {label}", parts),
            (f"{_OTHER_SETTINGS}{method}", f"Other settings of {label}", others),
        ):
            families = [_family("drop", row, some) for row in full]
            tables += [_outline(name, title, [*full, *some], families)] if some else []
    return tables


def _rank_among_ours(row: Row) -> int:
    """Position of a method in `OUR_METHODS`; -1 for others."""
    return OUR_METHODS.index(row.method) if row.method in OUR_METHODS else -1


def _is_of_ablation(row: Row) -> bool:
    """Whether a variant is in the ablation of our method; the paper's has five."""
    is_papers = row.method == PAPERS_METHOD
    return row.name in PAPERS_VARIANTS if is_papers else row.method in OUR_METHODS


def _family(name: str, row: Row, against: Sequence[Row] | Literal["strongest baseline"]) -> Family:
    """The tests of a row; those of an ablation are corrected by city and metric."""
    named = STRONGEST if isinstance(against, str) else tuple(each.name for each in against)
    return Family(
        name=name,
        row=row.name,
        against=named,
        metrics=HEADLINE,
        together="cell" if name == "drop" else "table",
    )


def _outline(
    name: str, title: str, rows: Sequence[Row], families: Sequence[Family] = ()
) -> TableOutline:
    return TableOutline(name=name, title=title, rows=tuple(rows), families=tuple(families))
