"""Which settings are tried: all combinations of the values of each, or some drawn by a seed."""

import hashlib
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from castpoi.core.config import pairs_of
from castpoi.core.errors import BadInput

Tried = Mapping[str, Sequence[str]]
"""The values to try of each setting, as a person writes them."""

_LONGEST_NAME: Final = 120
"""Characters of a folder's name; what is longer is told apart by a digest."""


def tried_of(words: Iterable[str]) -> Tried:
    """What to try, from words like `dropout=0.2,0.5`."""
    tried = {}
    for name, values in pairs_of(words).items():
        found = [value.strip() for value in values.split(",")]
        if not all(found):
            raise BadInput(
                f"'{name}={values}' leaves out a value to try; give values with commas between "
                f"them, as {name}=A,B"
            )
        twice = next((value for value in found if found.count(value) > 1), None)
        if twice is not None:
            raise BadInput(f"'{name}={values}' tries {twice} twice; leave one out")
        tried[name] = found
    if not tried:
        raise BadInput("nothing is to be tried; name a setting and its values, as dropout=0.2,0.5")
    return tried


def trials_of(
    tried: Tried, *, at_most: int | None = None, seed: int = 0
) -> list[Mapping[str, str]]:
    """Every combination of the values, the last setting changing fastest.

    Where there are more than `at_most`, so many are drawn without repetition. One seed always
    draws the same, and a larger `at_most` only adds to them.
    """
    count = math.prod(len(values) for values in tried.values())
    if at_most is None or count <= at_most:
        return [_trial(tried, number) for number in range(count)]
    rng = random.Random(seed)
    drawn: dict[int, None] = {}
    while len(drawn) < at_most:
        drawn[rng.randrange(count)] = None
    return [_trial(tried, number) for number in drawn]


def _trial(tried: Tried, number: int) -> Mapping[str, str]:
    """The combination of this number, read like a number whose digits are the values."""
    chosen = {}
    for name in reversed(list(tried)):
        number, digit = divmod(number, len(tried[name]))
        chosen[name] = tried[name][digit]
    return {name: chosen[name] for name in tried}


def trial_name(trial: Mapping[str, str]) -> str:
    """The settings of a trial as the name of a folder, in whatever order they were given."""
    name = ",".join(f"{setting}={value}" for setting, value in sorted(trial.items()))
    if len(name) <= _LONGEST_NAME:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:12]
    return f"{name[: _LONGEST_NAME - len(digest) - 1]}-{digest}"
