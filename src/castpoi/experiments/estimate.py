"""How long experiments may take, and the source of each estimate."""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, Final

from castpoi.core.config import read_dataclass
from castpoi.core.quantities import duration_words
from castpoi.experiments.experiment import Experiment
from castpoi.methods.outline import Row

_RATES: Final = Path(__file__).with_name("rates.toml")
_COUNTING_SECONDS: Final = 3.0  # to start a process and count; ranking takes less than a second
_MIN_LEFT: Final = 0.05  # share of its estimate that an experiment still needs after that time
_ROUGH: Final = "rough rates"
_NOT_KNOWN: Final = "not known"


@dataclass(frozen=True)
class Estimate:
    """Seconds, or None if nothing is known, and the source."""

    seconds: float | None
    source: str


@dataclass(frozen=True, kw_only=True)
class PastRun:
    """The cost of an experiment that is done."""

    recipe: tuple[str, str | None, dict[str, str]]
    fingerprint: str
    train_checkins: int
    threads: int
    seconds: float

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> "PastRun":
        """The cost in the record of an experiment."""
        return cls(
            recipe=read_dataclass(Row, record["row"]).recipe,
            fingerprint=str(record["key"]["fingerprint"]),
            train_checkins=int(record["train_checkins"]),
            threads=int(record["threads"]),
            seconds=float(record["seconds"]),
        )


class Estimator:
    """Estimates from past runs, or from rates where there are none."""

    def __init__(self, past_runs: Iterable[PastRun], *, threads: int) -> None:
        self._past_runs = list(past_runs)
        self._threads = threads

    def learn(self, run: PastRun) -> None:
        """Add one more measurement."""
        self._past_runs.append(run)

    def estimate(self, experiment: Experiment) -> Estimate:
        """How long an experiment may take on this suite's threads."""
        recipe, city = experiment.row.recipe, experiment.city.fingerprint
        same_row = [each for each in self._past_runs if each.recipe == recipe]
        here = [each for each in same_row if each.fingerprint == city]
        if here:
            return self._from(here, experiment, "measured")
        if same_row:
            return self._from(same_row, experiment, "other cities")
        if not experiment.row.is_learned:
            return Estimate(_COUNTING_SECONDS, "counting")
        guess = self._from_rates(experiment)
        in_city = (each for each in self._past_runs if each.fingerprint == city)
        related = [each for each in in_city if each.recipe[:2] == recipe[:2]]
        if related and guess.source in (_ROUGH, _NOT_KNOWN):
            return self._from(related, experiment, "other settings")
        return guess

    def _from(self, runs: Sequence[PastRun], experiment: Experiment, source: str) -> Estimate:
        """The median in proportion to check-ins and cores."""
        return Estimate(
            median(
                each.seconds
                * (experiment.city.train_checkins / max(1, each.train_checkins))
                * (each.threads / self._threads)
                for each in runs
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
        return Estimate(None, _NOT_KNOWN)


@cache
def _rates() -> list[dict[str, Any]]:
    rates: list[dict[str, Any]] = tomllib.loads(_RATES.read_text(encoding="utf-8"))["rate"]
    return rates


@dataclass(frozen=True)
class Remaining:
    """The time that several experiments still need."""

    seconds: float
    is_complete: bool  # every one of them could be estimated

    @property
    def words(self) -> str:
        """As `about 2 h 5 min`, or `at least ...` where an estimate is missing."""
        if not self.seconds and not self.is_complete:
            return "an unknown time"
        return f"{'about' if self.is_complete else 'at least'} {duration_words(self.seconds)}"


def remaining(
    waiting: Sequence[Estimate], running: Sequence[tuple[Estimate, float]], *, jobs: int
) -> Remaining:
    """The time left for experiments that wait and for those that have run for some seconds."""
    known = [each.seconds for each in waiting if each.seconds is not None]
    known += [
        max(each.seconds - elapsed, _MIN_LEFT * each.seconds)
        for each, elapsed in running
        if each.seconds is not None
    ]
    longest = max(known, default=0.0)  # no number of jobs makes one experiment shorter
    is_complete = len(known) == len(waiting) + len(running)
    return Remaining(max(longest, sum(known) / jobs), is_complete)
