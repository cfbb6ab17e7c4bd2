"""A suite: tables of rows, and which significance tests belong together.

A row is a method with its preset and settings; its name is that of a folder. Rows of one name are
one row, in whatever table they stand, so two tables share the runs they have in common.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

from castpoi.errors import BadInput

Role = Literal["ours", "baseline", "heuristic", "ablation"]
Together = Literal["cell", "table"]

Against = tuple[str, ...] | Literal["strongest baseline"]

STRONGEST: Final[Literal["strongest baseline"]] = "strongest baseline"
"""Instead of rows to test against: the baseline with the highest mean of each column."""

DEFAULT_SEEDS: Final = (42, 43, 44)
"""The seeds of the paper."""


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
class Table:
    """Rows that stand side by side."""

    name: str
    title: str
    rows: tuple[Row, ...]
    families: tuple[Family, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The table in JSON's words."""
        content = asdict(self)
        del content["name"]
        return content


@dataclass(frozen=True, kw_only=True)
class Suite:
    """Tables that are made together, and the seeds and cities to make them with."""

    name: str
    tables: tuple[Table, ...]
    seeds: tuple[int, ...] = DEFAULT_SEEDS
    cities: tuple[str, ...] = ()
    """Folders of cities, for a command that names none."""

    def __post_init__(self) -> None:
        every = [row for table in self.tables for row in table.rows]
        if not every:
            raise BadInput(f"the suite {self.name} has no row; give it at least one, or an include")
        for row in every:
            _check_twin(self.name, row, self._first(row.name))
        labels = [row.label for row in self.rows]
        twice = next((label for label in labels if labels.count(label) > 1), None)
        if twice is not None:
            names = [row.name for row in self.rows if row.label == twice]
            raise BadInput(
                f"the rows {' and '.join(names)} of the suite {self.name} are both labelled "
                f"{twice!r}; give each its own label"
            )

    @property
    def rows(self) -> list[Row]:
        """The rows of all tables, each once."""
        names = dict.fromkeys(row.name for table in self.tables for row in table.rows)
        return [self._first(name) for name in names]

    def _first(self, name: str) -> Row:
        return next(row for table in self.tables for row in table.rows if row.name == name)


def _check_twin(suite: str, row: Row, first: Row) -> None:
    if row.recipe != first.recipe:
        raise BadInput(
            f"the suite {suite} has two rows named {row.name} with different methods or settings; "
            "rename one, since a name is that of a folder"
        )
