"""The configs that settings lead to are those that are really trained."""

from typing import Any

import pytest

from castpoi.core.errors import BadInput
from castpoi.core.progress import SILENCE
from castpoi.methods.registry import METHODS, Method
from castpoi.model.ranker import CastPoiRanker
from castpoi.training import castpoi_trainer, sequence_trainer
from castpoi.training.configs import configs_for
from castpoi.training.course import Course
from castpoi.training.selection import ShortlistRanker
from castpoi.training.train import fit
from castpoi.training.trainer import TrainingOptions
from tests.contract import odd_city
from tests.messages import refused

LEARNED = [(each.name, preset) for each in METHODS for preset in each.presets]


class _Stopped(Exception):
    """A training that has begun, with its course."""


def stop(course: Course[Any], *_: object, **__: object) -> None:
    raise _Stopped(course)


@pytest.mark.parametrize(("name", "preset"), LEARNED)
def test_they_are_those_of_the_training(
    name: str, preset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(castpoi_trainer, "follow", stop)
    monkeypatch.setattr(sequence_trainer, "follow", stop)
    method, settings = METHODS.named(name), {"width": "32", "epochs": "7"}
    with pytest.raises(_Stopped) as stopped:
        fit(
            method,
            odd_city(),
            progress=SILENCE,
            options=TrainingOptions(preset=preset, settings=settings),
        )
    course = stopped.value.args[0]
    shape, plan = configs_for(method, preset, settings)
    assert (shape.to_dict(), plan) == (course.shape, course.plan)  # type: ignore[attr-defined]
    assert plan.epochs == 7


@pytest.mark.parametrize(
    ("objective", "kind"), [("full", CastPoiRanker), ("fast", ShortlistRanker)]
)
def test_the_papers_objective_chooses_its_epoch_by_exact_scores(
    objective: str, kind: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(castpoi_trainer, "follow", stop)
    options = TrainingOptions(settings={"objective": objective})
    with pytest.raises(_Stopped) as stopped:
        fit(METHODS.named("castpoi"), odd_city(), progress=SILENCE, options=options)
    course = stopped.value.args[0]
    assert isinstance(course.ranker(course.new_model()), kind)


def test_positions_that_the_objective_cannot_train_are_refused_before_a_training() -> None:
    with pytest.raises(BadInput, match="cannot train positions=absolute"):
        configs_for(METHODS.named("castpoi"), "fast", {"positions": "absolute"})


def test_the_settings_of_another_package_are_not_known_here() -> None:
    dice = Method(name="dice", line="throws dice", ranker="strangers:Dice", trainer="strangers:t")
    with refused(BadInput):
        configs_for(dice, "plain", {})


@pytest.mark.parametrize("name", ["castpoi", "sasrec"])
def test_a_wrong_setting_is_told_as_by_the_training(name: str) -> None:
    method = METHODS.named(name)
    with refused(BadInput):
        configs_for(method, method.presets[0], {"wdith": "64"})
