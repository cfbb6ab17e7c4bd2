"""Missed visits: those without which a place would have a lower score.

A model without a reader looks at no visit, so nothing in it says which visits spoke for a place.
The counterfactual does: leave out each of the last visits, and see how far the score falls.
"""

from collections.abc import Mapping
from typing import Final

LEFT_OUT: Final = 50
"""Last visits that are left out by turns; bounds the work of a long history."""

_ROUNDING: Final = 1e-4  # below it, a fall is float32 added up in another order


def left_out(visits: int) -> range:
    """Which visits of a history of so many are left out by turns, oldest 0."""
    return range(max(0, visits - LEFT_OUT), visits)


def most_missed(score: float, without: Mapping[int, float], shown: int) -> list[tuple[int, float]]:
    """The visits without which a score falls most, each with its share of all the falls.

    `without` has the score without each visit. A visit whose absence raises the score, or leaves
    it, is none of them.
    """
    falls = {visit: score - lower for visit, lower in without.items() if score - lower > _ROUNDING}
    total = sum(falls.values())
    order = sorted(falls, key=lambda visit: (-falls[visit], -visit))  # the later at a tie
    return [(visit, falls[visit] / total) for visit in order[:shown]]
