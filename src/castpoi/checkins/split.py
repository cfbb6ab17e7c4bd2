"""Splitting check-ins into train, validation and test.

*Leave one out* (the paper): the last check-in of every user with three or more is the test target,
the one before it the validation target, all others are train. *Chronological*: two cuts in time
split all check-ins 80/10/10. In both, a validation or test check-in is left out if its place (in
time also: its user) is not in train. *Given*: the split that the source has, with the same rule;
in the check-ins of a user its parts must follow in time. Check-ins are in canonical order, so of
two check-ins at one instant the later one in that order counts as the later one.
"""

from collections.abc import Mapping
from typing import Final, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from castpoi.checkins import record
from castpoi.core.arrays import Numbers
from castpoi.core.errors import BadInput, TooFewCheckins

SplitKind = Literal["leave-one-out", "chronological", "given"]
MIN_CHECKINS_OF_USER: Final = 3
TIME_SHARES: Final = (0.8, 0.9)
"""Share of all check-ins before the validation cut and before the test cut."""

_NEEDS: Final[Mapping[SplitKind, str]] = {
    "leave-one-out": f"it needs a user with {MIN_CHECKINS_OF_USER} or more check-ins whose last "
    "place is in train",
    "chronological": "the users and places of the last 10 % must be in the first 80 %",
    "given": "the users and places of the test check-ins must be in train",
}
_TRAIN, _VALIDATION, _TEST, _LEFT_OUT = range(len(record.PARTS))
Parts = NDArray[np.uint8]


def split_checkins(
    kind: SplitKind,
    user: Numbers,
    place: Numbers,
    at_us: Numbers,
    part_of_source: pl.Series | None = None,
) -> Parts:
    """The part of every check-in, as an index into `record.PARTS`."""
    if kind == "given":
        part = given(user, place, part_of_source)
    elif kind == "leave-one-out":
        part = leave_one_out(user, place)
    else:
        part = chronological(user, place, at_us)
    if not (part == _TEST).any():
        raise TooFewCheckins(
            f"the {kind} split of {len(user):,} check-ins has no test target: {_NEEDS[kind]}; "
            "relax the cleaning or add check-ins"
        )
    return part


def leave_one_out(user: Numbers, place: Numbers) -> Parts:
    """The last check-in of every user to test, the one before to validation, the rest to train."""
    part = np.full(len(user), _TRAIN, dtype=np.uint8)
    if not len(user):
        return part
    last = np.flatnonzero(np.r_[user[1:] != user[:-1], True])
    counts = np.diff(np.r_[-1, last])
    enough = counts >= MIN_CHECKINS_OF_USER
    part[last[enough]] = _TEST
    part[last[enough] - 1] = _VALIDATION
    part[np.repeat(~enough, counts)] = _LEFT_OUT
    return _without_unseen(part, place)


def chronological(user: Numbers, place: Numbers, at_us: Numbers) -> Parts:
    """Parts by two cuts in time; equal instants are always in the same part."""
    validation_from, test_from = time_cuts(at_us)
    part = ((at_us >= validation_from).astype(np.uint8) + (at_us >= test_from)).astype(np.uint8)
    return _without_unseen(_without_unseen(part, place), user)


def given(user: Numbers, place: Numbers, part_of_source: pl.Series | None) -> Parts:
    """The parts of the source; a check-in without one is left out."""
    if part_of_source is None:
        raise BadInput(
            "--split given needs a column with train, validation and test; name it with --columns "
            "part=COLUMN, or give a file of each part (train.csv, validation.csv, test.csv)"
        )
    unknown = part_of_source.filter(~part_of_source.is_in(record.PARTS[:_LEFT_OUT])).drop_nulls()
    if len(unknown):
        raise BadInput(f"the split has a part '{unknown[0]}'; write train, validation or test")
    codes = part_of_source.cast(pl.Enum(record.PARTS)).to_physical().fill_null(_LEFT_OUT)
    part: Parts = codes.to_numpy().astype(np.uint8)
    kept = part != _LEFT_OUT
    backwards = (np.diff(user[kept]) == 0) & (np.diff(part[kept].astype(int)) < 0)
    if backwards.any():
        raise BadInput(
            f"the given split has {backwards.sum():,} check-ins that follow a check-in of a later "
            "split of their user, so models would learn from the future of a target; use --split "
            "leave-one-out or chronological"
        )
    return _without_unseen(_without_unseen(part, place), user)


def time_cuts(at_us: Numbers) -> tuple[int, int]:
    """The instants at which validation and test begin."""
    ordered = np.sort(at_us)
    first, second = (int(ordered[int(len(ordered) * share)]) for share in TIME_SHARES)
    return first, second


def _without_unseen(part: Parts, codes: Numbers) -> Parts:
    """Leave out the targets whose code is not in train."""
    seen = np.zeros(int(codes.max(initial=-1)) + 1, dtype=np.bool_)
    seen[codes[part == _TRAIN]] = True
    return np.where((part != _TRAIN) & ~seen[codes], _LEFT_OUT, part).astype(np.uint8)


def split_table(part: Parts) -> pl.DataFrame:
    """The table that a city stores."""
    words = pl.Series(record.PARTS, dtype=pl.Enum(record.PARTS))
    return pl.DataFrame(
        {
            record.CHECKIN: np.arange(len(part), dtype=np.uint32),
            record.PART: words.gather(pl.Series(part.astype(np.uint32))),
        },
        schema=record.SPLIT_SCHEMA,
    )
