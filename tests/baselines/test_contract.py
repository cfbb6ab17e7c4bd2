import pytest

from castpoi.baselines.sequence import MODELS
from castpoi.methods.registry import METHODS, Method
from castpoi.training.train import settings_of
from tests.contract import check_contract, check_scores

WINDOWED = [
    method for method in METHODS if method.needs_training and "window" in settings_of(method)
]


@pytest.mark.parametrize("method", list(METHODS), ids=lambda method: method.name)
def test_every_method_keeps_the_contract(method: Method) -> None:
    check_contract(method)


@pytest.mark.parametrize("method", WINDOWED, ids=lambda method: method.name)
def test_its_scores_are_right_if_histories_are_longer_than_the_window(method: Method) -> None:
    check_scores(method, settings={"window": "4"})


@pytest.mark.parametrize("name", MODELS)
def test_its_scores_are_right_with_tuned_settings(name: str) -> None:
    check_scores(METHODS.named(name), preset="tuned")


def test_its_scores_are_right_with_the_paper_preset_of_castpoi() -> None:
    check_scores(METHODS.named("castpoi"), preset="paper")
