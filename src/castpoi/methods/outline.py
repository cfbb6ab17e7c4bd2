"""The outline of evidence: tables, the rows in them, and the significance tests of each table.

A suite is run and a report is laid out by it. A row is a method with its preset and settings; its
name is that of a folder. Rows with the same name in several tables are the same row and share runs.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

from castpoi.core.config import read_dataclass
from castpoi.methods.registry import METHODS

Role = Literal["ours", "baseline", "heuristic", "ablation", "oracle"]
Together = Literal["cell", "table"]
Against = Literal["strongest baseline"] | tuple[str, ...]

STRONGEST: Final[Literal["strongest baseline"]] = "strongest baseline"
"""Instead of rows to test against: the baseline with the highest mean of each column."""

OURS: Final[Role] = "ours"
ABLATION: Final[Role] = "ablation"
ORACLE: Final[Role] = "oracle"
"""Another project's own model, which verifies our copy of a method; no suite runs one."""
RIVALS: Final[tuple[Role, ...]] = ("baseline", "heuristic")
"""Roles of the rows that the strongest baseline is chosen from."""

KNOWN_TIME: Final = "known_time"  # the setting of a method that is given the time of each target


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of a table: a method with its preset and settings."""

    name: str  # of its folder
    label: str  # in tables
    method: str
    role: Role
    preset: str | None = None  # None for a counting method
    settings: dict[str, str] = field(default_factory=dict)  # changes to the preset, as text

    @property
    def recipe(self) -> tuple[str, str | None, dict[str, str]]:
        """All that a run depends on: two rows with the same recipe give the same numbers."""
        return self.method, self.preset, self.settings

    @property
    def known_time(self) -> bool:
        """Whether its method is given the time of each target; such rows have their own table."""
        return self.settings.get(KNOWN_TIME, "").lower() == "true"

    @property
    def has_seeds(self) -> bool:
        """Whether another seed gives other ranks; an unknown method counts as one that does."""
        method = METHODS.find(self.method)
        return method is None or method.has_seeds

    @property
    def is_learned(self) -> bool:
        """Whether its method is trained; an unknown method counts as learned."""
        method = METHODS.find(self.method)
        return method is None or method.needs_training


@dataclass(frozen=True, kw_only=True)
class Family:
    """Significance tests whose p-values are corrected together."""

    name: str
    row: str  # the row that is tested
    against: Against  # the rows it is tested against
    metrics: tuple[str, ...]
    together: Together  # `cell`: one family for each city and metric; `table`: one for all of them


@dataclass(frozen=True, kw_only=True)
class TableOutline:
    """The rows of a table, and their tests."""

    name: str
    title: str
    rows: tuple[Row, ...]
    families: tuple[Family, ...] = ()

    @property
    def is_ablation(self) -> bool:
        """Whether it has variants of one method, and no other method."""
        roles = {row.role for row in self.rows}
        return ABLATION in roles and not roles & set(RIVALS)

    @property
    def known_time(self) -> bool:
        """Whether its methods are given the time of each target; either all are or none is."""
        return all(row.known_time for row in self.rows)

    def label(self, name: str) -> str:
        """The label of a row; its name if the row is in another table."""
        return next((row.label for row in self.rows if row.name == name), name)

    def to_dict(self) -> dict[str, Any]:
        """The table as JSON can hold it, without its name."""
        content = asdict(self)
        del content["name"]
        return content

    @classmethod
    def from_dict(cls, name: str, content: Mapping[str, Any]) -> "TableOutline":
        """The inverse of `to_dict`."""
        return read_dataclass(cls, {"name": name, **content})
