"""The table of what lies beyond accuracy: distance error, coverage, popularity, calibration.

Calibration is told of learned methods only: the scores of the others are no logits.
"""

from collections.abc import Callable, Sequence
from statistics import fmean

from castpoi.evaluation.beyond import BeyondAccuracy
from castpoi.evaluation.result import Result
from castpoi.methods.outline import OURS, Row
from castpoi.reports.evidence import CityEvidence, Evidence
from castpoi.reports.table import NOTHING, Cell, Group, Table, number, percent

_COLUMNS = (
    "Method",
    "Median km off",
    "Mean km off",
    "Coverage %",
    "Popularity of first",
    "Popularity of listed",
    "Popularity of visited",
    "Mean softmax %",
    "Right first %",
    "ECE %",
)


def beyond_table(evidence: Evidence, city: CityEvidence) -> Table:
    """One line a row."""
    rows = evidence.rows_of(city)
    return Table(
        name=f"beyond-accuracy-{city.slug}",
        title=f"Beyond accuracy on {city.name}",
        caption=(
            "Km off: from the first place of the list to the place visited, 0 where it is right. "
            "Coverage: share of all places in anybody's list of ten. Popularity: mean check-ins in "
            "train, of first places, of all listed and of those visited. Softmax, share of right "
            "first places and expected calibration error (ECE, ten bins) of learned methods only: "
            "the scores of the others are no logits. Means over seeds."
        ),
        columns=_COLUMNS,
        groups=[Group(heading="", rows=[_line(city, row) for row in rows])],
    )


def _line(city: CityEvidence, row: Row) -> list[Cell]:
    results = city.contenders[row.name].results
    measured = [result.beyond for result in results]
    return [
        Cell(
            text=row.label,
            note="\n".join(result.name for result in results),
            is_ours=row.role == OURS,
        ),
        number(_mean(measured, lambda one: one.median_km_off)),
        number(_mean(measured, lambda one: one.mean_km_off)),
        percent(_mean(measured, lambda one: one.coverage), 1),
        number(_mean(measured, lambda one: one.popularity_of_first), 1),
        number(_mean(measured, lambda one: one.popularity_of_listed), 1),
        number(_mean(measured, lambda one: one.popularity_of_target), 1),
        *(_calibration_cells(results) if row.is_learned else [NOTHING] * 3),
    ]


def _calibration_cells(results: Sequence[Result]) -> list[Cell]:
    measured = [result.beyond.calibration for result in results]
    return [
        percent(fmean(one.confidence for one in measured), 1),
        percent(fmean(one.accuracy for one in measured), 1),
        percent(fmean(one.expected_error for one in measured), 1),
    ]


def _mean(measured: Sequence[BeyondAccuracy], of: Callable[[BeyondAccuracy], float]) -> float:
    return fmean(of(one) for one in measured)
