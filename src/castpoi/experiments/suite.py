"""A suite: tables that are made together, and the seeds and cities to make them with."""

from dataclasses import dataclass
from typing import Final

from castpoi.core.errors import BadInput
from castpoi.methods.outline import Row, TableOutline

DEFAULT_SEEDS: Final = (42, 43, 44)
"""The seeds of the paper."""
LARGEST_SEED: Final = 2**32 - 1
"""Every generator takes it, and every reader of JSON reads it exactly."""


@dataclass(frozen=True, kw_only=True)
class Suite:
    """Tables that are made together, and the seeds and cities to make them with."""

    name: str
    tables: tuple[TableOutline, ...]
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
