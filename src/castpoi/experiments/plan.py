"""The plan of a suite: which experiments are there, which are missing, and why."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from castpoi.experiments.experiment import Experiment
from castpoi.experiments.folder import SuiteFolder
from castpoi.experiments.key import CODE, Key, keys_of

_MISSING: Final = "missing"
_DAMAGED: Final = "damaged"


@dataclass(frozen=True, kw_only=True)
class Planned:
    """An experiment, and why it must be run."""

    experiment: Experiment
    why: str
    """Empty if its result is there."""

    @property
    def is_there(self) -> bool:
        """Whether nothing is to be done."""
        return not self.why


def plan_of(
    experiments: Sequence[Experiment], folder: SuiteFolder, *, any_code: bool = False
) -> list[Planned]:
    """What is to be done; with `any_code` a result may come from another version of the code."""
    for experiment in {each.city.name: each for each in experiments}.values():
        folder.check_city(experiment.city)
        if not experiment.is_trial:  # trials of a city that was renamed are merely made again
            folder.check_name(experiment.city)
    return [
        Planned(experiment=experiment, why=_why(experiment, key, folder, any_code=any_code))
        for experiment, key in zip(experiments, keys_of(experiments), strict=True)
    ]


def _why(experiment: Experiment, key: Key, folder: SuiteFolder, *, any_code: bool) -> str:
    proof = folder.proof(experiment)
    if not proof:
        return _MISSING
    changes = key.changes_since(proof["key"])
    if any_code and CODE in changes:
        changes.remove(CODE)
    if changes:
        return f"{' and '.join(changes)} changed"
    return "" if folder.is_whole(experiment) else _DAMAGED
