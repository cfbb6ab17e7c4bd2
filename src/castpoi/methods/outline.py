"""The outline of evidence: tables, the rows in them, and which significance tests belong together.

A suite is run by it and a report is laid out by it. A row is a method with its preset and settings;
its name is that of a folder. Rows of one name are one row, in whatever table they stand, so two
tables share the runs they have in common.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

from castpoi.core.errors import UnknownMethod
from castpoi.methods.registry import METHODS

Role = Literal["ours", "baseline", "heuristic", "ablation", "oracle"]
Together = Literal["cell", "table"]
Against = tuple[str, ...] | Literal["strongest baseline"]

STRONGEST: Final[Literal["strongest baseline"]] = "strongest baseline"
"""Instead of rows to test against: the baseline with the highest mean of each column."""

OURS: Final[Role] = "ours"
ABLATION: Final[Role] = "ablation"
ORACLE: Final[Role] = "oracle"
"""Of a row that checks another's copy of a method, and competes with none; no suite runs one."""
RIVALS: Final[tuple[Role, ...]] = ("baseline", "heuristic")
"""Roles of the rows among which the strongest baseline is sought."""

KNOWN_TIME: Final = "known_time"
"""The setting of a method that is told when each target was."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of a table: a method with its preset and settings."""

    name: str
    """Name of its folder."""
    label: str
    """What tables call it."""
    method: str
    role: Role
    preset: str | None = None
    """The preset of a learned method; None for a counted one."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Changes to the preset, as on the command line."""

    @property
    def recipe(self) -> tuple[str, str | None, dict[str, str]]:
        """All that a run depends on: two rows with the same recipe give the same numbers."""
        return self.method, self.preset, dict(self.settings)

    @property
    def known_time(self) -> bool:
        """Whether its method is told when each target was; such rows stand in a table apart."""
        return self.settings.get(KNOWN_TIME, "").lower() == "true"

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
    """The row that is tested."""
    against: Against
    """The rows it is tested against, or the strongest baseline of each column."""
    metrics: tuple[str, ...]
    together: Together
    """`cell`: a family for each city and metric; `table`: one for all of them."""


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

    @property
    def known_time(self) -> bool:
        """Whether its methods are told when each target was; either all are or none is."""
        return all(row.known_time for row in self.rows)

    def label(self, name: str) -> str:
        """What this table calls a row; its name where another table has it."""
        return next((row.label for row in self.rows if row.name == name), name)

    def to_dict(self) -> dict[str, Any]:
        """The table in JSON's words, but for its name."""
        content = asdict(self)
        del content["name"]
        return content

    @classmethod
    def from_dict(cls, name: str, content: Mapping[str, Any]) -> "TableOutline":
        """The table from JSON's words."""
        return cls(
            name=name,
            title=str(content["title"]),
            rows=tuple(row_from_dict(row) for row in content["rows"]),
            families=tuple(_family_from_dict(family) for family in content["families"]),
        )


def row_from_dict(content: Mapping[str, Any]) -> Row:
    """A row from JSON's words."""
    return Row(
        name=str(content["name"]),
        label=str(content["label"]),
        method=str(content["method"]),
        role=content["role"],
        preset=content.get("preset"),
        settings=dict(content.get("settings") or {}),
    )


def _family_from_dict(content: Mapping[str, Any]) -> Family:
    against = content["against"]
    return Family(
        name=str(content["name"]),
        row=str(content["row"]),
        against=STRONGEST if against == STRONGEST else tuple(against),
        metrics=tuple(content["metrics"]),
        together=content["together"],
    )
