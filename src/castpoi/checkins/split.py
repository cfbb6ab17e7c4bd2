"""Splitting: what may be learned from, and what is to be foretold.

*Leave one out* (the paper): of every user with three check-ins or more the last is the test
target, the one before it the validation target, all others are train. *Chronological*: two cuts
in time part all check-ins 80/10/10. Either way a validation or test check-in whose place (or, in
time, whose user) train does not know is left out. Check-ins stand in canonical order, so among
check-ins of one instant the later place in that order is the later check-in.
"""

from collections.abc import Mapping
from typing import Final, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from castpoi.checkins import record
from castpoi.core.errors import TooFewCheckins

SplitKind = Literal["leave-one-out", "chronological"]
LEAST_CHECKINS_OF_USER: Final = 3
TIME_SHARES: Final = (0.8, 0.9)
"""Share of all check-ins before the validation cut and before the test cut."""

_NEEDS: Final[Mapping[SplitKind, str]] = {
    "leave-one-out": f"a user needs {LEAST_CHECKINS_OF_USER} check-ins or more, the last of them "
    "at a place that train knows",
    "chronological": "the last tenth needs users and places that the first 80 % know",
}

_TRAIN, _VALIDATION, _TEST, _LEFT_OUT = range(len(record.PARTS))
Codes = NDArray[np.int64]


def split_checkins(kind: SplitKind, user: Codes, place: Codes, at_us: Codes) -> NDArray[np.uint8]:
    """The part of every check-in, as an index into `record.PARTS`."""
    if kind == "leave-one-out":
        part = leave_one_out(user, place)
    else:
        part = chronological(user, place, at_us)
    if not (part == _TEST).any():
        raise TooFewCheckins(
            f"the {kind} split of {len(user):,} check-ins has no test target: {_NEEDS[kind]}; "
            "loosen the cleaning or bring more check-ins"
        )
    return part


def leave_one_out(user: Codes, place: Codes) -> NDArray[np.uint8]:
    """Last check-in of every user to test, second-last to validation, the others to train."""
    part = np.full(len(user), _TRAIN, dtype=np.uint8)
    if not len(user):
        return part
    last = np.flatnonzero(np.r_[user[1:] != user[:-1], True])
    counts = np.diff(np.r_[-1, last])
    enough = counts >= LEAST_CHECKINS_OF_USER
    part[last[enough]] = _TEST
    part[last[enough] - 1] = _VALIDATION
    part[np.repeat(~enough, counts)] = _LEFT_OUT
    return _without_unseen(part, place)


def chronological(user: Codes, place: Codes, at_us: Codes) -> NDArray[np.uint8]:
    """Parts by two cuts in time; equal instants never stand on both sides of a cut."""
    validation_from, test_from = time_cuts(at_us)
    part = ((at_us >= validation_from).astype(np.uint8) + (at_us >= test_from)).astype(np.uint8)
    return _without_unseen(_without_unseen(part, place), user)


def time_cuts(at_us: Codes) -> tuple[int, int]:
    """The instants at which validation and test begin."""
    ordered = np.sort(at_us)
    first, second = (int(ordered[int(len(ordered) * share)]) for share in TIME_SHARES)
    return first, second


def _without_unseen(part: NDArray[np.uint8], codes: Codes) -> NDArray[np.uint8]:
    """Leave out targets whose code does not occur in train."""
    seen = np.zeros(int(codes.max()) + 1 if len(codes) else 0, dtype=np.bool_)
    seen[codes[part == _TRAIN]] = True
    return np.where((part != _TRAIN) & ~seen[codes], _LEFT_OUT, part).astype(np.uint8)


def split_table(part: NDArray[np.uint8]) -> pl.DataFrame:
    """The split as the city stores it."""
    words = pl.Series(record.PARTS, dtype=pl.Enum(record.PARTS))
    return pl.DataFrame(
        {
            record.CHECKIN: np.arange(len(part), dtype=np.uint32),
            record.PART: words.gather(pl.Series(part.astype(np.uint32))),
        },
        schema=record.SPLIT_SCHEMA,
    )
