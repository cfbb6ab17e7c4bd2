"""The plan of a suite: which experiments are there, which are missing, and why."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from castpoi.experiments.experiment import Experiment
from castpoi.experiments.folder import SuiteFolder
from castpoi.experiments.key import CODE, key_of

_MISSING: Final = "missing"


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
    for city in {experiment.city.name: experiment.city for experiment in experiments}.values():
        folder.check_city(city)
    return [
        Planned(experiment=experiment, why=_why(experiment, folder, any_code=any_code))
        for experiment in experiments
    ]


def _why(experiment: Experiment, folder: SuiteFolder, *, any_code: bool) -> str:
    proof = folder.proof(experiment)
    if not proof:
        return _MISSING
    changes = key_of(experiment).changes_since(proof.get("key", {}))
    if any_code and CODE in changes:
        changes.remove(CODE)
    return f"{' and '.join(changes)} changed" if changes else ""
