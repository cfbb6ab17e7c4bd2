"""A tune: trials of one method on one city, each judged by the validation part alone.

A trial is trained and nothing more: the test part is never ranked, so whoever chooses by a tune
has not looked at what the choice will be judged by.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.core.errors import BadInput, TooFewCheckins
from castpoi.experiments.experiment import CityFolder, Experiment
from castpoi.experiments.trials import Tried, trial_name, trials_of
from castpoi.experiments.tune_record import Setup
from castpoi.methods.outline import ABLATION, Row
from castpoi.methods.registry import METHODS, Method
from castpoi.training.train import configs_for

_SELECT_BY: Final = "select_by"


@dataclass(frozen=True, kw_only=True)
class Tune:
    """What is the same in all trials, and what each of them changes."""

    setup: Setup
    trials: Sequence[Mapping[str, str]]

    @property
    def experiments(self) -> list[Experiment]:
        """All trials, in the order in which they are run."""
        return [self.experiment(trial) for trial in self.trials]

    def experiment(self, trial: Mapping[str, str]) -> Experiment:
        """A trial as an experiment that ends with its training."""
        setup, name = self.setup, trial_name(trial)
        row = Row(
            name=name,
            label=name,
            method=setup.method,
            role=ABLATION,
            preset=setup.preset,
            settings={**setup.settings, **trial},
        )
        return Experiment(city=setup.city, row=row, seed=setup.seed, part=record.VALIDATION)


def tune_of(
    city: CityFolder,
    *,
    method: str,
    preset: str | None,
    settings: Mapping[str, str],
    tried: Tried,
    seed: int,
    at_most: int | None = None,
) -> Tune:
    """A tune whose every trial can be trained; what is wrong is told before anything is."""
    chosen = METHODS.named(method)
    start = _preset(chosen, preset)
    _check_names(chosen, settings, tried)
    trials = trials_of(tried, at_most=at_most, seed=seed)
    plans = [configs_for(chosen, start, {**settings, **trial})[1] for trial in trials]
    _check_validation(city)
    setup = Setup(
        city=city,
        method=chosen.name,
        preset=start,
        settings=settings,
        seed=seed,
        metric=plans[0].select_by,  # the same in all, since it is not tried
    )
    return Tune(setup=setup, trials=trials)


def _preset(method: Method, preset: str | None) -> str:
    """The preset that is asked for, or the default of a learned method."""
    if method.default_preset is None:
        learned = ", ".join(each.name for each in METHODS if each.needs_training)
        raise BadInput(
            f"{method.name} is counted, not learned, so it has no settings to try; choose one of "
            f"{learned}"
        )
    if preset is not None and preset not in method.presets:
        raise BadInput(
            f"{method.name} has no preset {preset!r}; choose {' or '.join(method.presets)}"
        )
    return preset or method.default_preset


def _check_names(method: Method, settings: Mapping[str, str], tried: Tried) -> None:
    """Refuse settings that cannot be tried, or cannot be changed at all."""
    both = sorted(settings.keys() & tried.keys())
    if both:
        raise BadInput(f"{both[0]} is both set and tried; leave out one of the two")
    method.check_free({*settings, *tried})
    if _SELECT_BY in tried:
        raise BadInput(
            f"{_SELECT_BY} is what trials are judged by, so it cannot be tried; set it to one value"
        )


def _check_validation(city: CityFolder) -> None:
    if not len(City.load(city.folder).targets(record.VALIDATION)):
        raise TooFewCheckins(
            f"{city.folder} has no check-in in the validation part, so nothing tells which trial "
            "is best; prepare the city again from more check-ins"
        )
