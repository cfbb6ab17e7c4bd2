"""A table as people read it, before it becomes Markdown, CSV, LaTeX or HTML.

A cell keeps the number behind its words, so that a CSV has all digits and a page can sort, and the
folders the number comes from.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

DAGGER: Final = "†"


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One number or word of a table."""

    text: str
    value: float | None = None
    """The number behind the words."""
    order: float | None = None
    """What a page sorts by where the words hold several numbers, so that no one is behind them."""
    parts: Mapping[str, float] = field(default_factory=dict)
    """The numbers behind the words by name, where there are several or more than are shown."""
    std: float | None = None
    """Sample deviation over seeds, in the unit of the words."""
    stars: str = ""
    is_disputed: bool = False
    """The two tests do not agree about it."""
    paper: str = ""
    """What the paper has here."""
    is_best: bool = False
    is_strongest: bool = False
    """The strongest baseline of its column."""
    is_ours: bool = False
    """The label of the row that a report is about."""
    is_faint: bool = False
    """Too few targets to tell."""
    note: str = ""
    """Where it comes from, or what it was tested against."""
    link: str = ""
    """Where a page leads to from here."""

    @property
    def marks(self) -> str:
        """Stars, and a dagger where the tests disagree."""
        return self.stars + (DAGGER if self.is_disputed else "")

    @property
    def spread(self) -> str:
        """The deviation in words; empty with one seed."""
        return "" if self.std is None else f"± {self.std:.2f}"


NOTHING = Cell(text="–")
"""Where there is no number."""


@dataclass(frozen=True, kw_only=True)
class Group:
    """Lines under a heading of their own, such as one city's."""

    heading: str
    rows: Sequence[Sequence[Cell]]
    foot: Sequence[Sequence[Cell]] = ()
    """Lines that stay below the others however these are sorted."""

    def __iter__(self) -> Iterator[Sequence[Cell]]:
        return iter([*self.rows, *self.foot])


@dataclass(frozen=True, kw_only=True)
class Table:
    """Columns, and groups of lines."""

    name: str
    """Name of its files."""
    title: str
    caption: str
    """What was counted and what the marks mean."""
    columns: Sequence[str]
    groups: Sequence[Group]
    words: int = 1
    """How many of the first columns hold words, not numbers."""


def word(text: str, *, note: str = "", order: float | None = None) -> Cell:
    """A cell that holds words, sorted by a number where one is given."""
    return Cell(text=text, note=note, order=order)


def count(number: int | None) -> Cell:
    """A cell that holds a count."""
    return NOTHING if number is None else Cell(text=f"{number:,}", value=number)


def number(value: float | None, decimals: int = 2) -> Cell:
    """A cell that holds a number."""
    if value is None:
        return NOTHING
    return Cell(text=f"{value:,.{decimals}f}", value=value)


def percent(fraction: float | None, decimals: int = 2) -> Cell:
    """A cell that holds a fraction in percent, without the sign."""
    return number(None if fraction is None else 100 * fraction, decimals)
