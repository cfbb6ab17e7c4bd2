"""Trials of one method on one city, ranked by the validation split alone.

A trial is an experiment that ends with its training: the test split is never ranked, so the choice
of settings does not depend on it. DIR/tune.json holds the trials of all commands in a folder, best
first; a later command resumes from it.
"""

import hashlib
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from castpoi.checkins import record as columns
from castpoi.checkins.city import City
from castpoi.core.config import pairs_of
from castpoi.core.errors import BadInput, TooFewCheckins
from castpoi.core.files import read_or_nothing, write_json, writing
from castpoi.experiments.estimate import PastRun
from castpoi.experiments.experiment import CityFolder, Experiment, code_of
from castpoi.experiments.folder import Planned, Record, State, SuiteFolder
from castpoi.experiments.worker import OF_TRAINING
from castpoi.methods.outline import ABLATION, Row
from castpoi.methods.registry import METHODS, Method
from castpoi.training.train import configs_for

DONE: Final = "done"
OUTDATED: Final = "other code"  # state of a trial that another version of the method has made
_FILE: Final = "tune.json"
_RULE: Final = (
    "trials are compared by the metric on the validation part, at the epoch that training keeps; "
    "the test part was never ranked"
)
_OF_TRIAL: Final = (*OF_TRAINING, "seconds", "threads", "commit", "code")
_LONGEST_NAME: Final = 120  # characters of a folder's name; a longer one ends with a digest

Trial = Mapping[str, str]  # the settings that one trial changes, as text


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """What all trials of a folder have in common, and the trials of this command."""

    city: CityFolder
    method: str
    preset: str
    settings: Mapping[str, str]  # changes to the preset in all trials
    seed: int
    metric: str  # the validation metric that trials are compared by
    trials: Sequence[Trial]

    @property
    def setup(self) -> dict[str, Any]:
        """What all trials have in common; not the folder of the city, which may move."""
        names = ("method", "preset", "settings", "seed", "metric")
        about = {name: getattr(self, name) for name in names}
        return {"fingerprint": self.city.fingerprint, **about}

    def experiment(self, trial: Trial) -> Experiment:
        """A trial as an experiment."""
        name = name_of(trial)
        row = Row(
            name=name,
            label=name,
            method=self.method,
            role=ABLATION,
            preset=self.preset,
            settings={**self.settings, **trial},
        )
        return Experiment(city=self.city, row=row, seed=self.seed, part=columns.VALIDATION)


def tuning_of(
    city: CityFolder,
    *,
    method: str,
    preset: str | None,
    settings: Mapping[str, str],
    tries: Iterable[str],
    seed: int,
    at_most: int | None = None,
) -> Tuning:
    """The trials of a command, all of which can be trained; `tries` are like `dropout=0.2,0.5`."""
    chosen, values = METHODS.named(method), _values_of(tries)
    start = _preset(chosen, preset)
    _check_names(chosen, settings, values)
    trials = trials_of(values, at_most=at_most, seed=seed)
    configs = [configs_for(chosen, start, {**settings, **trial}) for trial in trials]
    if not len(City.load(city.folder).targets(columns.VALIDATION)):
        raise TooFewCheckins(
            f"{city.folder} has no check-in in the validation split, so trials cannot be compared; "
            "prepare the city again from more check-ins"
        )
    return Tuning(
        city=city,
        method=chosen.name,
        preset=start,
        settings=settings,
        seed=seed,
        metric=configs[0][1].select_by,  # the same in all, since it cannot be tried
        trials=trials,
    )


def _values_of(tries: Iterable[str]) -> dict[str, list[str]]:
    """The values to try of each setting."""
    found = {
        name: [value.strip() for value in values.split(",")]
        for name, values in pairs_of(tries).items()
    }
    for name, values in found.items():
        given = f"'{name}={','.join(values)}'"
        if not all(values):
            raise BadInput(
                f"{given} lacks a value; give values with commas between them, as {name}=A,B"
            )
        if twice := [value for value in values if values.count(value) > 1]:
            raise BadInput(f"{given} has {twice[0]} twice; leave one out")
    if not found:
        raise BadInput("there is nothing to try; name a setting and values, as dropout=0.2,0.5")
    return found


def _preset(method: Method, preset: str | None) -> str:
    if method.default_preset is None:
        learned = ", ".join(each.name for each in METHODS if each.needs_training)
        raise BadInput(
            f"{method.name} is counted, not learned, so it has no settings to try; choose one of "
            f"{learned}"
        )
    method.check_preset(preset)
    return preset or method.default_preset


def _check_names(method: Method, settings: Trial, values: Mapping[str, object]) -> None:
    if both := sorted(settings.keys() & values.keys()):
        raise BadInput(f"{both[0]} is both set and tried; leave out one of the two")
    method.check_free({*settings, *values})
    if "select_by" in values:
        raise BadInput(
            "select_by is the metric that trials are compared by, so it cannot be tried; set it to "
            "one value"
        )


def trials_of(
    values: Mapping[str, Sequence[str]], *, at_most: int | None = None, seed: int = 0
) -> list[Trial]:
    """Every combination of the values, the last setting changing fastest.

    If there are more than `at_most`, that many are drawn. One seed always draws the same ones, and
    a larger `at_most` only adds to them.
    """
    count = math.prod(map(len, values.values()))
    if at_most is None or count <= at_most:
        return [_trial(values, number) for number in range(count)]
    rng = random.Random(seed)
    drawn: dict[int, None] = {}
    while len(drawn) < at_most:
        drawn[rng.randrange(count)] = None
    return [_trial(values, number) for number in drawn]


def _trial(values: Mapping[str, Sequence[str]], number: int) -> Trial:
    """The combination of this number, whose digits are the values."""
    chosen = {}
    for name in reversed(list(values)):
        number, digit = divmod(number, len(values[name]))
        chosen[name] = values[name][digit]
    return {name: chosen[name] for name in values}


def name_of(trial: Trial) -> str:
    """The settings of a trial as the name of a folder, in alphabetical order."""
    name = ",".join(f"{setting}={value}" for setting, value in sorted(trial.items()))
    if len(name) <= _LONGEST_NAME:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:12]
    return f"{name[: _LONGEST_NAME - len(digest) - 1]}-{digest}"


class TuneStatus:
    """The content of tune.json; with `save`, every change is written at once."""

    def __init__(self, folder: SuiteFolder, tuning: Tuning, *, any_code: bool = False) -> None:
        self._folder, self._tuning = folder, tuning
        self._code = code_of(METHODS.named(tuning.method))
        self._trials: dict[str, dict[str, Any]] = {}
        former = read_or_nothing(folder.root / _FILE)
        if former:
            self._check_setup(former)
        trials = former.get("trials")
        for trial in trials if isinstance(trials, list) else ():
            if isinstance(trial, dict) and trial.keys() >= {"name", "settings", "state"}:
                trial = {**dict.fromkeys(_OF_TRIAL), **trial}
                self._trials[trial["name"]] = trial | {"state": self._state(trial, any_code)}
        self.plan = [self._planned(trial) for trial in tuning.trials]

    @property
    def content(self) -> dict[str, Any]:
        """The trials, the best one first; those that are not done come last, in their order."""
        trials = sorted(self._trials.values(), key=self._rank)
        return {
            "kind": "tune",
            "rule": _RULE,
            "city": str(self._tuning.city.folder),
            **self._tuning.setup,
            "best": trials[0]["name"] if trials and trials[0]["state"] == DONE else None,
            "trials": trials,
        }

    def save(self) -> "TuneStatus":
        """Write the file."""
        path = self._folder.root / _FILE
        with writing(path):
            write_json(path, self.content)
        return self

    def note(self, experiment: Experiment, state: State, why: str, record: Record) -> None:
        """Store the state of a trial, and how its training went."""
        found = {**record, "code": experiment.key["code"]}
        outcome = {name: found[name] for name in _OF_TRIAL} if record else {}
        self._trials[experiment.row.name] |= {"state": state, "why": why, **outcome}
        self.save()

    def past_runs(self) -> list[PastRun]:
        """The cost of all trials that are done."""
        city = self._tuning.city
        return [
            PastRun(
                recipe=self._tuning.experiment(trial["settings"]).row.recipe,
                fingerprint=city.fingerprint,
                train_checkins=city.train_checkins,
                threads=trial["threads"] or 1,
                seconds=trial["seconds"],
            )
            for trial in self._trials.values()
            if trial["state"] in (DONE, OUTDATED)
        ]

    def _planned(self, trial: Trial) -> Planned:
        experiment = self._tuning.experiment(trial)
        known = self._trials.get(experiment.row.name, {"state": "missing"})
        if known["state"] == DONE:
            return Planned(experiment=experiment)
        why = "code changed" if known["state"] == OUTDATED else "missing"
        self._trials[experiment.row.name] = {
            "name": experiment.row.name,
            "settings": dict(trial),
            "state": "waiting",
            "why": why,
            **dict.fromkeys(_OF_TRIAL),
        }
        return Planned(experiment=experiment, why=why)

    def _state(self, trial: Mapping[str, Any], any_code: bool) -> str:
        """The state of a trial of an earlier command; none is running, since we have the lock."""
        if trial["state"] not in (DONE, OUTDATED) or not trial["validation"]:
            return "waiting"
        return DONE if any_code or trial["code"] == self._code else OUTDATED

    def _check_setup(self, former: Mapping[str, Any]) -> None:
        """Refuse a folder whose trials differ in more than what is tried."""
        for name, value in self._tuning.setup.items():
            if former.get(name) != value:
                raise BadInput(
                    f"{self._folder.root} holds trials with {name} {_text_of(former.get(name))}, "
                    f"not {_text_of(value)}; choose another --out"
                )

    def _rank(self, trial: Mapping[str, Any]) -> tuple[bool, float]:
        is_done = trial["state"] == DONE
        return not is_done, -trial["validation"][self._tuning.metric] if is_done else 0.0


def _text_of(value: object) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{name}={each}" for name, each in sorted(value.items())) or "unchanged"
    text = str(value)
    return text if len(text) <= 20 else text[:12]
