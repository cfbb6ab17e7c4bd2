"""How long experiments may take, and who says so."""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, Final

from castpoi.core.quantities import duration_words
from castpoi.experiments.experiment import Experiment
from castpoi.methods.outline import row_from_dict

_RATES: Final = Path(__file__).with_name("rates.toml")
_COUNTING_SECONDS: Final = 3.0
"""The start of a process and a count; results/nyc shows that ranking takes less than a second."""
_LEAST_LEFT: Final = 0.05
"""An experiment that has used up its estimate still needs this share of it."""
_ROUGH: Final = "rough rates"
_NOBODY: Final = "not known"


@dataclass(frozen=True)
class Estimate:
    """Seconds, or None where nobody knows, and where they are from."""

    seconds: float | None
    source: str

    @property
    def is_rough(self) -> bool:
        """Whether nobody has measured these very settings, or anything at all."""
        return self.source in (_ROUGH, _NOBODY)


NOT_KNOWN: Final = Estimate(None, _NOBODY)


@dataclass(frozen=True, kw_only=True)
class Former:
    """What an experiment took that is done."""

    recipe: tuple[str, str | None, dict[str, str]]
    fingerprint: str
    train_checkins: int
    threads: int
    seconds: float

    def is_kin_of(self, experiment: Experiment) -> bool:
        """Whether it was on the same city, with the same method and preset."""
        row = experiment.row
        same_start = self.recipe[:2] == (row.method, row.preset)
        return same_start and self.fingerprint == experiment.city.fingerprint

    @classmethod
    def of(cls, proof: Mapping[str, Any]) -> "Former":
        """From the proof of a finished experiment."""
        return cls(
            recipe=row_from_dict(proof["row"]).recipe,
            fingerprint=str(proof["key"]["fingerprint"]),
            train_checkins=int(proof["train_checkins"]),
            threads=int(proof["threads"]),
            seconds=float(proof["seconds"]),
        )


class Estimator:
    """Guesses from what was measured, best evidence first."""

    def __init__(self, formers: Iterable[Former], *, threads: int) -> None:
        self._formers = list(formers)
        self._threads = threads

    def learn(self, former: Former) -> None:
        """Take one more measurement into account."""
        self._formers.append(former)

    def estimate(self, experiment: Experiment) -> Estimate:
        """How long an experiment may take on this suite's threads."""
        same_row = [each for each in self._formers if each.recipe == experiment.row.recipe]
        here = [each for each in same_row if each.fingerprint == experiment.city.fingerprint]
        if here:
            return self._from(here, experiment, "measured")
        if same_row:
            return self._from(same_row, experiment, "other cities")
        if not experiment.needs_training:
            return Estimate(_COUNTING_SECONDS, "counting")
        guess = self._from_rates(experiment)
        kin = [each for each in self._formers if each.is_kin_of(experiment)]
        return self._from(kin, experiment, "other settings") if kin and guess.is_rough else guess

    def _from(self, formers: Sequence[Former], experiment: Experiment, source: str) -> Estimate:
        """By check-ins and cores, which is exact for the same city on the same cores."""
        return Estimate(
            median(
                each.seconds
                * (experiment.city.train_checkins / max(1, each.train_checkins))
                * (each.threads / self._threads)
                for each in formers
            ),
            source,
        )

    def _from_rates(self, experiment: Experiment) -> Estimate:
        row = experiment.row
        for rate in _rates():
            if (rate["method"], rate["preset"]) == (row.method, row.preset):
                thousands = experiment.city.train_checkins / 1000
                seconds = rate["seconds"] * thousands * rate["cores"] / self._threads
                return Estimate(seconds, _ROUGH if row.settings else "rates")
        return NOT_KNOWN


@cache
def _rates() -> list[dict[str, Any]]:
    rates: list[dict[str, Any]] = tomllib.loads(_RATES.read_text(encoding="utf-8"))["rate"]
    return rates


@dataclass(frozen=True)
class Remaining:
    """How long is left of several experiments."""

    seconds: float
    is_whole: bool
    """Whether every one of them could be estimated."""

    @property
    def words(self) -> str:
        """As `about 2 h 5 min`, or `at least ...` where something is not known."""
        if not self.seconds and not self.is_whole:
            return "an unknown time"
        return f"{'about' if self.is_whole else 'at least'} {duration_words(self.seconds)}"


def remaining(
    waiting: Sequence[Estimate], under_way: Sequence[tuple[Estimate, float]], *, jobs: int
) -> Remaining:
    """What is left of experiments that wait and of those that have run for some seconds."""
    known = [each.seconds for each in waiting if each.seconds is not None]
    known += [
        max(each.seconds - elapsed, _LEAST_LEFT * each.seconds)
        for each, elapsed in under_way
        if each.seconds is not None
    ]
    longest = max(known, default=0.0)  # no number of jobs makes one experiment shorter
    is_whole = len(known) == len(waiting) + len(under_way)
    return Remaining(max(longest, sum(known) / jobs), is_whole)
