"""DIR/tune.json: the trials of a folder from best to worst, by the validation part alone.

As with a suite the states are told, not trusted: whether a trial is there is decided by its key.
Trials of earlier commands in the same folder stay as they were told, if they differ in nothing but
what was tried; removing the folder of one does not remove it from the record.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from castpoi.core.errors import BadInput
from castpoi.core.files import read_json, read_or_nothing, write_json, writing
from castpoi.experiments.code_version import code_version
from castpoi.experiments.experiment import CityFolder, Experiment
from castpoi.experiments.folder import SuiteFolder
from castpoi.experiments.plan import Planned
from castpoi.experiments.record import State
from castpoi.experiments.wholeness import TOLD_OF_TRIAL
from castpoi.methods.registry import METHODS
from castpoi.methods.run import CONFIG

_FILE: Final = "tune.json"
_RULE: Final = (
    "trials are compared by the metric on the validation part, at the epoch that training keeps; "
    "the test part was never ranked"
)
_NEVER_DONE: Final = dict.fromkeys((*TOLD_OF_TRIAL, "seconds", "commit", "code"))
DONE: Final[State] = "done"
OUTDATED: Final = "other code"
"""State of a trial of an earlier command that another version of the code has made."""


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What all trials of a folder have in common."""

    city: CityFolder
    method: str
    preset: str
    settings: Mapping[str, str]
    """Changes to the preset that all trials share."""
    seed: int
    metric: str
    """The validation metric that trials are compared by."""

    def to_dict(self) -> dict[str, Any]:
        """The setup in JSON's words, without the folder of the city, which may move."""
        return {
            "fingerprint": self.city.fingerprint,
            "method": self.method,
            "preset": self.preset,
            "settings": dict(self.settings),
            "seed": self.seed,
            "metric": self.metric,
        }


def check_setup(folder: SuiteFolder, setup: Setup) -> None:
    """Refuse a folder whose trials differ in more than what is tried: they do not compare."""
    former, now = read_tune(folder), setup.to_dict()
    if not former:
        return
    for name, value in now.items():
        if former.get(name) != value:
            raise BadInput(
                f"{folder.root} holds trials with {name} {_told(former.get(name))}, not "
                f"{_told(value)}; choose another --out"
            )


def read_tune(folder: SuiteFolder) -> dict[str, Any]:
    """The record of a folder as it stands; empty where there is none."""
    return read_or_nothing(folder.root / _FILE)


def _trials_of(former: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The trials of an earlier record; what is damaged is left out."""
    trials = former.get("trials")
    return [
        trial
        for trial in (trials if isinstance(trials, list) else [])
        if isinstance(trial, dict) and trial.keys() >= {"name", "settings", "state", *_NEVER_DONE}
    ]


def _told(value: object) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{name}={each}" for name, each in sorted(value.items())) or "unchanged"
    text = str(value)
    return text if len(text) <= 20 else text[:12]


class TuneRecord:
    """The record of a folder of trials; every change is on disk at once."""

    def __init__(
        self, folder: SuiteFolder, setup: Setup, plan: Sequence[Planned], *, any_code: bool = False
    ) -> None:
        self._folder = folder
        self._setup = setup
        self._trials: dict[str, dict[str, Any]] = {}
        for trial in _trials_of(read_tune(folder)):
            self._trials[trial["name"]] = self._former(trial, any_code=any_code)
        for planned in plan:
            self._add(planned)
        self._save()

    def note(self, experiment: Experiment, state: State, why: str = "") -> None:
        """Say how a trial stands that is not done."""
        self._trials[experiment.row.name] |= {"state": state, "why": why}
        self._save()

    def note_done(self, experiment: Experiment, proof: Mapping[str, Any]) -> None:
        """Say that a trial is done, and what its training tells."""
        self._trials[experiment.row.name] |= self._outcome(experiment, proof)
        self._save()

    def _add(self, planned: Planned) -> None:
        experiment = planned.experiment
        fixed = self._setup.settings
        self._trials[experiment.row.name] = {
            "name": experiment.row.name,
            "settings": {
                name: value for name, value in experiment.row.settings.items() if name not in fixed
            },
            "state": "waiting",
            "why": planned.why,
            **_NEVER_DONE,
        }
        if planned.is_there:
            proof = self._folder.proof(experiment)
            self._trials[experiment.row.name] |= self._outcome(experiment, proof)

    def _former(self, trial: dict[str, Any], *, any_code: bool) -> dict[str, Any]:
        """A trial of an earlier command; nothing of it is under way, since we are alone here."""
        if trial["state"] not in (DONE, OUTDATED):
            return {**trial, "state": "waiting"}
        is_ours = any_code or trial["code"] == code_version(METHODS.named(self._setup.method))
        return {**trial, "state": DONE if is_ours else OUTDATED}

    def _outcome(self, experiment: Experiment, proof: Mapping[str, Any]) -> dict[str, Any]:
        """What the training of a trial that is done tells of its best epoch."""
        papers = self._folder.papers(experiment)
        training = read_json(papers / CONFIG)["training"]
        return {
            "state": DONE,
            "why": "",
            **{name: training[name] for name in TOLD_OF_TRIAL},
            "seconds": proof["seconds"],
            "commit": read_json(papers / "manifest.json")["commit"],
            "code": proof["key"]["code"],
        }

    def _save(self) -> None:
        trials = sorted(self._trials.values(), key=self._place)
        is_known = bool(trials) and trials[0]["state"] == DONE
        content = {
            "kind": "tune",
            "rule": _RULE,
            "city": str(self._setup.city.folder),
            **self._setup.to_dict(),
            "best": trials[0]["name"] if is_known else None,
            "trials": trials,
        }
        path = self._folder.root / _FILE
        with writing(path):
            write_json(path, content)

    def _place(self, trial: Mapping[str, Any]) -> tuple[bool, float]:
        """What is done first, best first; else as they were asked for."""
        if trial["state"] != DONE:
            return True, 0.0
        return False, -trial["validation"][self._setup.metric]
