"""How many places CaST-POI's reader reads for when it serves, and how that was decided.

A shortlist answers faster and may miss what only the reader would lift. Whether it does is a
matter of the run: so a service measures it when it begins (see `agreement.py`), and tells.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from castpoi.core.errors import BadInput

Why = Literal["exact", "given", "to measure", "measured"]
Setting = int | Literal["auto", "all"]
"""A size, or one of the words below."""
AUTO: Final = "auto"
"""The smallest size that will do, to be measured."""
ALL: Final = "all"
"""Every place."""

LEAST_AGREEMENT: Final = 0.99
"""Share of the exact best places that a shortlist has to find, to be chosen by itself."""

FEW_HISTORIES: Final = 10
"""Fewer than these say little."""


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """Which share of the exact best places a shortlist of each size finds."""

    anywhere: Mapping[int, float]
    """Where every place may be recommended."""
    new: Mapping[int, float]
    """Where only new ones may."""
    histories: int
    """Histories it was measured on."""


NOT_MEASURED: Final = Agreement(anywhere={}, new={}, histories=0)


@dataclass(frozen=True, kw_only=True)
class Shortlist:
    """A decision about the shortlist of a run."""

    size: int | None
    """Places that the reader reads for; None: all of them."""
    size_new: int | None
    """The same where no visited place may be recommended."""
    why: Why
    agreement: Agreement = NOT_MEASURED
    of: str | None = None
    """Whose histories it was measured on: stored, city or made-up."""

    @property
    def is_exact(self) -> bool:
        """Whether the reader always reads for all places."""
        return self.size is None and self.size_new is None

    def to_dict(self) -> dict[str, Any]:
        """The words of the API."""
        return {
            "size": self.size,
            "size_new": self.size_new,
            "why": self.why,
            "agreement": _told(self.agreement.anywhere),
            "agreement_new": _told(self.agreement.new),
            "histories": self.agreement.histories,
            "of": self.of,
        }


def _told(agreement: Mapping[int, float]) -> dict[str, float]:
    return {str(size): round(share, 4) for size, share in agreement.items()}


EXACT: Final = Shortlist(size=None, size_new=None, why="exact")
"""Every place is scored exactly."""


def decided(setting: Setting, *, places: int, exact_up_to: int) -> Shortlist:
    """What a setting means for a vocabulary of so many places."""
    if isinstance(setting, int) and setting < 1:
        raise BadInput(
            f"a shortlist of {setting} places is none; give at least 1, or 'all' to read for every "
            "place"
        )
    if setting == ALL or places <= exact_up_to:
        return EXACT
    if setting == AUTO:
        return Shortlist(size=None, size_new=None, why="to measure")
    return Shortlist(size=setting, size_new=setting, why="given")


def chosen(agreement: Agreement, *, of: str) -> Shortlist:
    """The smallest sizes that agree well enough with exact scores, or all places.

    A few histories may agree by luck: then it is one at least twice as large.
    """
    times = 2 if agreement.histories < FEW_HISTORIES else 1
    return Shortlist(
        size=_smallest(agreement.anywhere, times),
        size_new=_smallest(agreement.new, times),
        why="measured",
        agreement=agreement,
        of=of,
    )


def _smallest(agreement: Mapping[int, float], times: int) -> int | None:
    """The smallest size that agrees, or the smallest so many times as large."""
    good = sorted(size for size, share in agreement.items() if share >= LEAST_AGREEMENT)
    return next((size for size in good if size >= times * good[0]), None)
