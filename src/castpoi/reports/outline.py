"""The outline of a report: which tables, which rows in them, which tests belong together.

It is read from DIR/suite.json where a suite was run; for other folders of results it is made from
the methods that are there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, get_args

from castpoi.core.errors import BrokenFolder
from castpoi.evaluation.metrics import METRICS
from castpoi.methods.outline import (
    ABLATION,
    KNOWN_TIME,
    ORACLE,
    OURS,
    RIVALS,
    STRONGEST,
    Against,
    Family,
    Role,
    Row,
    TableOutline,
)

HEADLINE: Final = ("HR@5", "HR@10", "NDCG@5", "NDCG@10", "MRR")
"""The metrics of the paper's tables."""

STANDS_APART: Final = (
    "Told when each target was: these numbers are not to be set beside those of methods that were "
    "not."
)
"""What must be said wherever the numbers of a row that knows the time stand."""

IS_NO_METHOD: Final = (
    "An oracle is another's own model, trained by its own code on our split and ranked by our "
    "evaluation: it checks our copy and competes with nobody."
)
"""What must be said where the numbers of an oracle stand."""

WHAT_TESTS_TELL: Final = (
    "Tests speak about these trained weights on these targets, not about the noise of seeds: "
    "trained from another seed, a method has other weights."
)
"""What must be said wherever a test rests on few seeds."""

LEAVES_SEEDS_OUT: Final = (
    "Means are over all seeds of a row, a test over as many as both sides have: its difference may "
    "be another (see Tests)."
)
"""What must be said where stars stand beside means over more seeds than they know."""

PAPERS_METHOD: Final = "castpoi"
"""The method of the paper."""
PAPERS_VARIANTS: Final = (
    "no-temporal-bias",
    "no-spatial-bias",
    "no-candidate-conditioning",
    "no-revisit-gate",
    "no-backbone",
)
"""The variants of the paper's ablation, as the suite `ablation` names them."""
PAPERS_FAMILIES: Final = {STRONGEST: 15, ABLATION: 5}
"""How many tests the paper corrects together: in its main table, and in a cell of its ablation."""
OUR_METHODS: Final = (PAPERS_METHOD, "castpoi-next")
"""Those that are no baselines."""
STRONGER: Final = ("esasrec", "target-attention")
"""References beyond the paper; like its baselines with preset `tuned` they have a table apart."""
_TUNED: Final = "tuned"
_OTHER_SETTINGS: Final = "settings-"
_RECBOLE: Final = "recbole-"
_LABELS: Final = {
    "castpoi": "CaST-POI",
    "castpoi-next": "CaST-POI next",
    "target-attention": "Target attention",
    "esasrec": "eSASRec",
    "sasrec": "SASRec",
    "bert4rec": "BERT4Rec",
    "caser": "Caser",
    "narm": "NARM",
    "srgnn": "SR-GNN",
    "stamp": "STAMP",
    "core": "CORE",
    "revisit": "Revisit heuristic",
    "markov": "Markov",
    "recent": "Most recent",
    "popularity": "Popularity",
    "nearest": "Nearest",
}


def outlines_in(suite: Mapping[str, Any], *, path: str) -> list[TableOutline]:
    """The tables of a suite.json, which stands at `path`."""
    try:
        tables = [
            TableOutline.from_dict(str(name), table) for name, table in suite["tables"].items()
        ]
        for table in tables:
            _check(table)
        return tables
    except (KeyError, TypeError, AttributeError, ValueError) as problem:
        raise BrokenFolder(
            f"{path} is not as 'castpoi reproduce' writes it ({problem!r}); give that command again"
        ) from problem


def _check(table: TableOutline) -> None:
    """Refuse words that no suite has written."""
    roles = {row.role for row in table.rows}
    metrics = {metric for family in table.families for metric in family.metrics}
    unknown = sorted((roles - set(get_args(Role))) | (metrics - set(METRICS)))
    if unknown:
        raise ValueError(f"no role or metric is named {unknown[0]}")


def row_of_method(method: str) -> Row:
    """The row of a method about which nobody said more."""
    row = Row(name=method, label=_LABELS.get(method, method), method=method, role="baseline")
    role = OURS if method in OUR_METHODS else "baseline" if row.is_learned else "heuristic"
    return replace(row, role=role)


def row_of_oracle(method: str) -> Row:
    """The row of an oracle's result, such as `recbole-stamp`."""
    copied = row_of_method(method.removeprefix(_RECBOLE)).label
    label = f"RecBole's {copied}" if method.startswith(_RECBOLE) else method
    return Row(name=method, label=label, method=method, role=ORACLE)


def row_of_run(method: str, changes: Mapping[str, str], preset: str | None = None) -> Row:
    """The row of runs of a method with such changes to its preset; without any, the method's."""
    row = replace(row_of_method(method), preset=changes.get("preset", preset))
    if not changes:
        return row
    told = ", ".join(_change(name, value) for name, value in changes.items())
    variant = replace(
        row,
        name=_variant_name(method, changes),
        label=f"{row.label}{' ' if told.startswith('w/o') else ', '}{told}",
        settings=changes,
    )
    # who knows the time is no variant to be tested against who does not; a baseline stays a rival
    is_part_less = method in OUR_METHODS and not variant.known_time
    return replace(variant, role=ABLATION) if is_part_less else variant


def letter_words(rows: Sequence[Row]) -> list[str]:
    """What must be said where the paper's method was not trained to the letter of the paper."""
    presets = dict.fromkeys(row.preset for row in rows if row.method == PAPERS_METHOD)
    return [
        f"{row_of_method(PAPERS_METHOD).label} is trained with preset {preset} here, which is not "
        "the letter of the paper: docs/paper.md, decisions 7 and 15 tell the differences."
        for preset in presets
        if preset not in (None, "paper")
    ]


def without_name(label: str, full: str) -> str:
    """The label of a variant without that of the full model, which stands beside it anyway."""
    return label.removeprefix(full).lstrip(", ") or label


def _change(name: str, value: str) -> str:
    """What was changed, in a word or two: a part that is switched off is missing."""
    if name == KNOWN_TIME:
        return "time known"
    if name == "preset":
        return f"preset {value}"
    words = name.replace("_", " ")
    return f"w/o {words}" if value == "false" else f"{words} = {value}"


def _variant_name(method: str, changes: Mapping[str, str]) -> str:
    """Name of a variant; a part less of the paper's model is called as in the paper's ablation."""
    parts = [f"{name}={value}" for name, value in changes.items()]
    if method == PAPERS_METHOD and list(changes.values()) == ["false"]:
        return f"no-{next(iter(changes)).replace('_', '-')}"
    return "-".join([method, *parts])


def outlines_of(rows: Sequence[Row]) -> list[TableOutline]:
    """A main table, an ablation of each of ours that has variants; who knows the time apart.

    Variants that the paper's ablation does not have are in no family with those that it has.
    """
    timed = [row for row in rows if row.known_time]
    oracles = [row for row in rows if row.role == ORACLE]
    untold = [row for row in rows if not row.known_time and row.role != ORACLE]
    tables = _outlines_of_untold(untold) if untold else []
    if timed:
        tables.append(_outline("known-time", "Known time", timed, ()))
    if oracles:
        copied = {row.method.removeprefix(_RECBOLE) for row in oracles}
        copies = [row for row in untold if row.name in copied]
        tables.append(_outline("oracles", "Oracles of our copies", [*copies, *oracles], ()))
    return tables


def _outlines_of_untold(rows: Sequence[Row]) -> list[TableOutline]:
    """The tables of rows that do not know when a target was."""
    ours = [row for row in rows if row.role == OURS]
    rivals = [row for row in rows if row.role in RIVALS]
    variants = [row for row in rows if row.role == ABLATION]
    stronger = [row for row in rivals if row.preset == _TUNED or row.method in STRONGER]
    plain = [row for row in rivals if row not in stronger]
    families = tuple(_against(row, STRONGEST) for row in ours)
    tables = []
    if plain or not (variants or stronger):
        tables.append(_outline("main", "Main table", [*plain, *ours], families))
    if stronger:
        title = "Tuned baselines and stronger references"
        tables.append(_outline(_TUNED, title, [*stronger, *ours], families))
    for method in dict.fromkeys(row.method for row in variants):
        # in a table of its own settings a baseline is the one that is asked about
        full = [replace(row, role=OURS) for row in [*ours, *plain] if row.name == method]
        own = [row for row in variants if row.method == method]
        label = row_of_method(method).label
        parts = [row for row in own if _is_part_less(row)]
        if parts:
            tables.append(_beside(f"ablation-{method}", f"Ablation of {label}", full, parts))
        others = [row for row in own if row not in parts]
        if others:
            name = f"{_OTHER_SETTINGS}{method}"
            tables.append(_beside(name, f"Other settings of {label}", full, others))
    return tables


def _is_part_less(row: Row) -> bool:
    """Whether a variant belongs in an ablation: one of ours, of the paper's method its five."""
    if row.method == PAPERS_METHOD:
        return row.name in PAPERS_VARIANTS
    return row.method in OUR_METHODS


def is_of_other_settings(table: TableOutline) -> bool:
    """Whether it holds whatever settings were tried; no city is expected to have all of them."""
    return table.name.startswith(_OTHER_SETTINGS)


def _beside(name: str, title: str, full: Sequence[Row], variants: Sequence[Row]) -> TableOutline:
    """Variants of one method beside it, if it has a result itself; tested city by city."""
    names = tuple(row.name for row in variants)
    families = tuple(_against(row, names) for row in full)
    return _outline(name, title, [*full, *variants], families)


def _outline(
    name: str, title: str, rows: Sequence[Row], families: tuple[Family, ...]
) -> TableOutline:
    return TableOutline(name=name, title=title, rows=tuple(rows), families=families)


def _against(row: Row, against: Against) -> Family:
    is_strongest = against == STRONGEST
    return Family(
        name="improvement" if is_strongest else "drop",
        row=row.name,
        against=against,
        metrics=HEADLINE,
        together="table" if is_strongest else "cell",
    )
