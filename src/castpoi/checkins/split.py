"""Splitting check-ins into train, validation and test.

*Leave one out* (the paper): the last check-in of every user with three or more is the test target,
the one before it the validation target, all others are train. *Chronological*: two cuts in time
split all check-ins 80/10/10. In both, a validation or test check-in is left out if its place (in
time also: its user) is not in train. *Given*: the split that the source has, with the same rule;
in the check-ins of a user its parts must follow in time. Check-ins are in canonical order, so of
two check-ins at one instant the later one in that order counts as the later one.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from castpoi.checkins import record
from castpoi.checkins.tables import Tables
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


def split_checkins(kind: SplitKind, checkins: Tables) -> list[Parts]:
    """The part of every check-in, as an index into `record.PARTS`, for each part of the table."""
    parts = parts_of(kind, checkins)
    if not any((part == _TEST).any() for part in parts):
        raise TooFewCheckins(
            f"the {kind} split of {checkins.height:,} check-ins has no test target: "
            f"{_NEEDS[kind]}; relax the cleaning or add check-ins"
        )
    return parts


def parts_of(kind: SplitKind, checkins: Tables) -> list[Parts]:
    """The same, perhaps without a test target."""
    if kind == "leave-one-out":
        parts = [_leave_one_out(user) for (user,) in checkins.arrays(record.USER)]
        return _without_unseen(parts, checkins, record.PLACE)
    if kind == "given":
        parts = [_given(table) for table in checkins]
    else:
        instants = [at for (at,) in checkins.arrays(record.AT_UTC)]
        cuts = time_cuts(np.concatenate(instants))
        parts = [_chronological(at, *cuts) for at in instants]
    return _without_unseen(_without_unseen(parts, checkins, record.PLACE), checkins, record.USER)


def _leave_one_out(user: Numbers) -> Parts:
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
    return part


def _chronological(at_us: Numbers, validation_from: int, test_from: int) -> Parts:
    """Parts by two cuts in time; equal instants are always in the same part."""
    return ((at_us >= validation_from).astype(np.uint8) + (at_us >= test_from)).astype(np.uint8)


def _given(checkins: pl.DataFrame) -> Parts:
    """The parts of the source; a check-in without one is left out."""
    if record.SOURCE_PART not in checkins.columns:
        raise BadInput(
            "--split given needs a column with train, validation and test; name it with --columns "
            "part=COLUMN, or give a file of each part (train.csv, validation.csv, test.csv)"
        )
    words, user = checkins[record.SOURCE_PART], checkins[record.USER].to_numpy()
    unknown = words.filter(~words.is_in(record.PARTS[:_LEFT_OUT])).drop_nulls()
    if len(unknown):
        raise BadInput(f"the split has a part '{unknown[0]}'; write train, validation or test")
    codes = words.cast(pl.Enum(record.PARTS)).to_physical().fill_null(_LEFT_OUT)
    part: Parts = codes.to_numpy().astype(np.uint8)
    kept = part != _LEFT_OUT
    of_one_user = user[kept][1:] == user[kept][:-1]
    backwards = of_one_user & (np.diff(part[kept].astype(int)) < 0)
    if backwards.any():
        raise BadInput(
            f"the given split has {backwards.sum():,} check-ins that follow a check-in of a later "
            "split of their user, so models would learn from the future of a target; use --split "
            "leave-one-out or chronological"
        )
    return part


def time_cuts(at_us: Numbers) -> tuple[int, int]:
    """The instants at which validation and test begin."""
    ordered = np.sort(at_us)
    first, second = (int(ordered[int(len(ordered) * share)]) for share in TIME_SHARES)
    return first, second


def _without_unseen(parts: Sequence[Parts], checkins: Tables, column: str) -> list[Parts]:
    """Leave out the targets whose code is not in train."""
    seen = np.zeros(len(checkins.codes_in(column)), dtype=np.bool_)
    for part, (codes,) in zip(parts, checkins.arrays(column), strict=True):
        seen[codes[part == _TRAIN]] = True
    return [
        np.where((part != _TRAIN) & ~seen[codes], _LEFT_OUT, part).astype(np.uint8)
        for part, (codes,) in zip(parts, checkins.arrays(column), strict=True)
    ]


def words_of(part: Parts) -> pl.Series:
    """The words that a city stores."""
    return pl.Series(record.PARTS, dtype=pl.Enum(record.PARTS)).gather(part.astype(np.uint32))
