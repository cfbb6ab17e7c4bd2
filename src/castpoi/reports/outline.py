"""The outline of a report: which tables, which rows in them, which tests belong together.

It is read from DIR/suite.json where a suite was run; for other folders of results it is made from
the methods that are there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from castpoi.errors import BrokenFolder, UnknownMethod
from castpoi.methods import METHODS

HEADLINE: Final = ("HR@5", "HR@10", "NDCG@5", "NDCG@10", "MRR")
"""The metrics of the paper's tables."""

OURS: Final = "ours"
ABLATION: Final = "ablation"
RIVALS: Final = ("baseline", "heuristic")
"""Roles of the rows among which the strongest baseline is sought."""

_STRONGEST: Final = "strongest baseline"
_OUR_METHODS: Final = ("castpoi", "castpoi-next")
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


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of a table: a method with its preset and settings."""

    name: str
    label: str
    method: str
    role: str
    preset: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_learned(self) -> bool:
        """Whether its method is trained; a method unknown here counts as learned."""
        try:
            return METHODS.named(self.method).needs_training
        except UnknownMethod:
            return True


@dataclass(frozen=True, kw_only=True)
class Family:
    """Significance tests whose p-values are corrected together."""

    name: str
    row: str
    against: tuple[str, ...] | None
    """Rows; None: the strongest baseline of each column."""
    metrics: tuple[str, ...]
    over_all: bool
    """One family for all cities and metrics; otherwise one for each city and metric."""


@dataclass(frozen=True, kw_only=True)
class TableOutline:
    """Rows that stand side by side, and their tests."""

    name: str
    title: str
    rows: tuple[Row, ...]
    families: tuple[Family, ...] = ()

    @property
    def is_ablation(self) -> bool:
        """Whether variants of one method stand beside it, and no other method."""
        roles = {row.role for row in self.rows}
        return ABLATION in roles and not roles & set(RIVALS)

    def label(self, name: str) -> str:
        """What this table calls a row; its name where another table has it."""
        return next((row.label for row in self.rows if row.name == name), name)


def outlines_in(suite: Mapping[str, Any], *, path: str) -> list[TableOutline]:
    """The tables of a suite.json, which stands at `path`."""
    try:
        return [
            TableOutline(
                name=str(name),
                title=str(table["title"]),
                rows=tuple(row_in(row) for row in table["rows"]),
                families=tuple(_family_in(family) for family in table["families"]),
            )
            for name, table in suite["tables"].items()
        ]
    except (KeyError, TypeError, AttributeError) as problem:
        raise BrokenFolder(
            f"{path} is not as 'castpoi reproduce' writes it ({problem!r}); give that command again"
        ) from problem


def row_in(content: Mapping[str, Any]) -> Row:
    """A row in JSON's words."""
    return Row(
        name=str(content["name"]),
        label=str(content["label"]),
        method=str(content["method"]),
        role=str(content["role"]),
        preset=content.get("preset"),
        settings=dict(content.get("settings") or {}),
    )


def row_of_method(method: str) -> Row:
    """The row of a method about which nobody said more."""
    row = Row(name=method, label=_LABELS.get(method, method), method=method, role="baseline")
    role = OURS if method in _OUR_METHODS else "baseline" if row.is_learned else "heuristic"
    return Row(name=row.name, label=row.label, method=method, role=role)


def outlines_of(rows: Sequence[Row]) -> list[TableOutline]:
    """A main table of all methods, and an ablation where there are variants of ours."""
    ours = [row for row in rows if row.role == OURS]
    rivals = [row for row in rows if row.role in RIVALS]
    variants = [row for row in rows if row.role == ABLATION]
    tables = []
    if rivals or not variants:
        families = tuple(_against(row, None) for row in ours[:1])
        tables.append(_outline("main", "Main table", [*rivals, *ours], families))
    if variants:
        names = tuple(row.name for row in variants)
        families = tuple(_against(row, names) for row in ours[:1])
        tables.append(_outline("ablation", "Ablation", [*ours, *variants], families))
    return tables


def _outline(
    name: str, title: str, rows: Sequence[Row], families: tuple[Family, ...]
) -> TableOutline:
    return TableOutline(name=name, title=title, rows=tuple(rows), families=families)


def _against(row: Row, against: tuple[str, ...] | None) -> Family:
    name = "improvement" if against is None else "drop"
    over_all = against is None
    return Family(name=name, row=row.name, against=against, metrics=HEADLINE, over_all=over_all)


def _family_in(content: Mapping[str, Any]) -> Family:
    against = content["against"]
    return Family(
        name=str(content["name"]),
        row=str(content["row"]),
        against=None if against == _STRONGEST else tuple(against),
        metrics=tuple(content["metrics"]),
        over_all=content["together"] == "table",
    )
