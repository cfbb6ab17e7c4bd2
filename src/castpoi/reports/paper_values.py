"""What the CaST-POI paper reports, to stand beside what we measure.

The values are those of its two result tables and of its dataset table, in percent. A city is taken
for one of the paper's three only if it has its name and its number of targets.
"""

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

from castpoi.methods.outline import RIVALS, TableOutline
from castpoi.reports.outline import PAPERS_METHOD, PAPERS_VARIANTS

_FOLDER: Final = "paper"
_MAIN: Final = "main.csv"


@dataclass(frozen=True)
class PaperValue:
    """A mean over three seeds, in percent."""

    mean: float
    stars: str

    @property
    def words(self) -> str:
        """Its mean and stars; the deviation would crowd a table."""
        return f"{self.mean:.2f}{self.stars}"


@dataclass(frozen=True, kw_only=True)
class PaperCity:
    """A dataset as the paper counts it."""

    name: str
    users: int
    places: int
    checkins: int
    targets: int


def paper_city(name: str, targets: int) -> PaperCity | None:
    """The paper's dataset of this name, if it has as many targets."""
    found = _cities().get(name.lower())
    return found if found is not None and found.targets == targets else None


def paper_value(
    table: TableOutline, city: PaperCity | None, row: str, metric: str
) -> PaperValue | None:
    """What the paper reports for a row of a table; None where it reports nothing."""
    file = _file(table)
    if city is None or file is None:
        return None
    return _table(file).get((city.name, row, metric))


def paper_improvement(table: TableOutline, city: PaperCity | None, metric: str) -> float | None:
    """By what part CaST-POI is above the best of all other rows of the paper's main table.

    None for a table that may not stand beside it.
    """
    if city is None or _file(table) != _MAIN:
        return None
    values = {
        row: value.mean
        for (name, row, measured), value in _table(_MAIN).items()
        if (name, measured) == (city.name, metric)
    }
    ours = values.pop(PAPERS_METHOD, None)
    return ours / max(values.values()) - 1 if ours is not None else None


def _file(table: TableOutline) -> str | None:
    """The paper's table that a table of ours may stand beside."""
    if table.is_ablation:
        is_the_papers = any(row.name in PAPERS_VARIANTS for row in table.rows)
        return "ablation.csv" if is_the_papers else None
    rivals = {row.name for row in table.rows if row.role in RIVALS}
    known = {row for _, row, _ in _table(_MAIN)}
    return _MAIN if not rivals or rivals & known else None


@cache
def _table(name: str) -> dict[tuple[str, str, str], PaperValue]:
    return {
        (line["city"], line["row"], line["metric"]): PaperValue(
            mean=float(line["mean"]),
            stars=line["stars"],
        )
        for line in _lines(name)
    }


@cache
def _cities() -> dict[str, PaperCity]:
    return {
        line["city"]: PaperCity(
            name=line["city"],
            **{key: int(value) for key, value in line.items() if key != "city"},
        )
        for line in _lines("cities.csv")
    }


def _lines(name: str) -> list[dict[str, str]]:
    text = files("castpoi.reports").joinpath(_FOLDER, name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))
