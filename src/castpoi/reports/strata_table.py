"""The table of strata: HR@10 of every row, kind by kind of target, with the number of targets."""

from collections.abc import Sequence
from typing import Final

from castpoi.evaluation.strata import TOO_SMALL, Stratum, strata
from castpoi.methods.outline import Row
from castpoi.reports.evidence import CityEvidence, Evidence
from castpoi.reports.table import NOTHING, Cell, Group, Table, count, word

METRIC: Final = "HR@10"

AXES: Final = {
    "history": "Visits before",
    "frequency": "Popularity of place",
    "return": "Been there before",
    "distance": "Distance from last visit",
    "gap": "Time since last visit",
}


def strata_of(evidence: Evidence, city: CityEvidence) -> list[Stratum]:
    """The strata of a city with HR@10 of all rows but variants of our method."""
    rows = evidence.rows_of(city)
    return strata([city.contenders[row.name] for row in rows], [METRIC])


def strata_table(evidence: Evidence, city: CityEvidence, found: Sequence[Stratum]) -> Table:
    """One line a stratum, one column a row; small strata are set back."""
    rows = evidence.rows_of(city)
    return Table(
        name=f"strata-{city.slug}",
        title=f"Strata of {city.name}",
        caption=(
            f"{METRIC} in percent, mean over seeds; n is the number of targets; best of a line in "
            f"bold. Strata of fewer than {TOO_SMALL} targets are faint, or in italics: they are "
            "too small to tell methods apart. The protocol says where tail, torso and head are cut."
        ),
        columns=["Targets by", "Stratum", "n", *(row.label for row in rows)],
        groups=[Group(heading="", rows=[_line(stratum, rows) for stratum in found])],
        words=2,
    )


def name_of(stratum: Stratum) -> str:
    """The name of a stratum as it is printed."""
    return stratum.name.replace(">=", "≥")


def _line(stratum: Stratum, rows: Sequence[Row]) -> list[Cell]:
    means = {row.name: stratum.metrics[row.name][METRIC].mean for row in rows}
    told = [mean for mean in means.values() if mean is not None]
    highest = max(told) if len(told) > 1 else None
    return [
        word(AXES[stratum.axis]),
        word(name_of(stratum)),
        count(stratum.n),
        *(_cell(stratum, means[row.name], highest) for row in rows),
    ]


def _cell(stratum: Stratum, mean: float | None, highest: float | None) -> Cell:
    if mean is None:
        return NOTHING
    return Cell(
        text=f"{100 * mean:.1f}",
        value=100 * mean,
        is_best=mean == highest and not stratum.is_too_small,
        is_faint=stratum.is_too_small,
        note=f"{stratum.n:,} targets",
    )
