"""Which settings are tried, worked by hand."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castpoi.core.errors import BadInput
from castpoi.experiments.trials import trial_name, trials_of, tried_of

TRIED = {"dropout": ["0.2", "0.5"], "width": ["64", "128", "256"]}


def test_every_combination_is_tried_and_the_last_setting_changes_fastest() -> None:
    assert trials_of(TRIED) == [
        {"dropout": "0.2", "width": "64"},
        {"dropout": "0.2", "width": "128"},
        {"dropout": "0.2", "width": "256"},
        {"dropout": "0.5", "width": "64"},
        {"dropout": "0.5", "width": "128"},
        {"dropout": "0.5", "width": "256"},
    ]
    assert [list(trial) for trial in trials_of(TRIED)] == [["dropout", "width"]] * 6


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_the_combinations_are_those_of_nested_loops(counts: list[int]) -> None:
    tried = {f"s{place}": [str(value) for value in range(n)] for place, n in enumerate(counts)}
    loops = [dict(zip(tried, values, strict=True)) for values in product(*tried.values())]
    assert trials_of(tried) == loops


def test_as_many_as_there_may_be_are_drawn_and_more_only_add() -> None:
    four = trials_of(TRIED, at_most=4, seed=3)
    assert len({trial_name(trial) for trial in four}) == 4
    assert all(trial in trials_of(TRIED) for trial in four)
    assert trials_of(TRIED, at_most=4, seed=3) == four
    assert trials_of(TRIED, at_most=5, seed=3)[:4] == four
    assert any(trials_of(TRIED, at_most=4, seed=seed) != four for seed in range(5))
    assert trials_of(TRIED, at_most=6, seed=3) == trials_of(TRIED)


def test_a_few_are_drawn_of_more_than_could_ever_be_listed() -> None:
    tried = {f"s{place}": [str(value) for value in range(10)] for place in range(30)}
    assert len(trials_of(tried, at_most=3)) == 3


def test_words_name_settings_and_values() -> None:
    assert tried_of(["dropout=0.2, 0.5", "width=64"]) == {
        "dropout": ["0.2", "0.5"], "width": ["64"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["dropout"], "setting 'dropout' is not of the form name=value"),
        (["dropout="], "'dropout=' leaves out a value to try; give values .* as dropout=A,B"),
        (["dropout=0.2,,0.5"], "'dropout=0.2,,0.5' leaves out a value to try"),
        (["dropout=0.2,0.3,0.2"], "'dropout=0.2,0.3,0.2' tries 0.2 twice; leave one out"),
        (["dropout=0.2", "dropout=0.3"], "setting 'dropout' is given twice; give it once"),
        ([], "nothing is to be tried; name a setting and its values, as dropout=0.2,0.5"),
    ],
)
def test_words_that_try_nothing_are_told(words: list[str], sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        tried_of(words)


def test_a_trial_is_named_by_its_settings_in_whatever_order() -> None:
    assert trial_name({"width": "64", "dropout": "0.2"}) == "dropout=0.2,width=64"
    assert trial_name({"dropout": "0.2", "width": "64"}) == "dropout=0.2,width=64"


def test_many_settings_still_give_the_name_of_a_folder() -> None:
    many = {f"a_setting_with_a_long_name_{number}": "0.5" for number in range(12)}
    name, other = trial_name(many), trial_name({**many, "a_setting_with_a_long_name_9": "0.6"})
    assert len(name) == len(other) == 120
    assert name != other
