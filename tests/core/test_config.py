"""Settings: read from text and TOML, checked by the types of their fields."""

import math
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from castpoi.core.config import (
    Config,
    Count,
    Layers,
    NotNegative,
    Positive,
    Share,
    Size,
    changed,
    differences,
    pairs_of,
    preset_named,
    read_dataclass,
)  # fmt: skip
from castpoi.core.errors import BadInput
from tests.messages import refused


@dataclass(frozen=True, kw_only=True)
class Shape(Config):
    width: Size = 128
    layers: Layers = 2
    dropout: Share = 0.2
    bias: bool = True
    start: Literal["zero", "one"] = "one"


@dataclass(frozen=True, kw_only=True)
class Steps(Config):
    epochs: Count = 4
    rate: Positive = 1e-3
    decay: NotNegative = 0.0
    threads: Count | None = None


@dataclass(frozen=True, kw_only=True)
class Row:
    label: str
    against: str | tuple[str, ...] = ()
    settings: dict[str, str | bool | float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Table:
    title: str
    seeds: tuple[int, ...] = (1,)
    rows: dict[str, Row] = field(default_factory=dict)


def test_text_is_read_by_the_type_of_the_setting() -> None:
    words = ["width=64", "dropout=0.3", "bias=False", "start=zero", "epochs = 5", "threads=None"]
    shape, steps = changed(Shape(), Steps(threads=2), pairs_of(words))
    assert shape == Shape(width=64, dropout=0.3, bias=False, start="zero")
    assert steps == Steps(epochs=5)


def test_values_need_no_text() -> None:
    settings = {"width": 64, "bias": False, "rate": 1, "threads": None}
    assert changed(Shape(), Steps(threads=2), settings) == (
        Shape(width=64, bias=False), Steps(rate=1.0),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("config", "name", "value"),
    [
        *((Shape, "width", value) for value in (0, 2049, 2.5, True, "64", None)),
        *((Shape, "layers", value) for value in (0, 33)),
        *((Shape, "dropout", value) for value in (1.0, -0.1, math.nan, "0.1", True)),
        *((Shape, "bias", value) for value in (1, "true", None)),
        *((Shape, "start", value) for value in ("two", 1)),
        *((Steps, "epochs", value) for value in (0, 1.5)),
        *((Steps, "rate", value) for value in (0, math.inf)),
        *((Steps, "decay", value) for value in (-1, None)),
        *((Steps, "threads", value) for value in (0, "none")),
    ],
)
def test_a_config_refuses_a_value_that_breaks_the_rule(
    config: type[Config], name: str, value: Any
) -> None:
    with refused(BadInput):
        config(**{name: value})


@pytest.mark.parametrize(
    "word", ["width=wide", "width=0", "dropout=some", "bias=0", "threads=all", "rate=1e999"]
)
def test_text_that_cannot_be_read_is_refused_with_the_rule(word: str) -> None:
    with refused(BadInput):
        changed(Shape(), Steps(), pairs_of([word]))


@pytest.mark.parametrize("name", ["widht", "epoch", "zz"])
def test_an_unknown_setting_gets_a_guess_and_all_names(name: str) -> None:
    with refused(BadInput):
        changed(Shape(), Steps(), {name: "3"})


@pytest.mark.parametrize("words", [["width"], ["=3"], [""], ["epochs=3", "epochs = 4"]])
def test_a_setting_is_one_name_and_one_value(words: list[str]) -> None:
    with refused(BadInput):
        pairs_of(words)


def test_a_config_is_the_same_after_json() -> None:
    shape = Shape(width=64, start="zero")
    assert Shape.from_dict(shape.to_dict()) == shape
    assert Shape.from_dict({}) == Shape()
    with refused(BadInput):
        Shape.from_dict({"widht": 64})


def test_a_table_of_toml_has_tables_and_lists_inside() -> None:
    content = {
        "title": "All", "seeds": [4, 2],
        "rows": {
            "mine": {"label": "Mine", "against": ["a"], "settings": {"bias": True, "width": 2}},
            "deep": {"label": "Deep", "against": "all"},
        },
    }  # fmt: skip
    assert read_dataclass(Table, content, at="own.toml: ") == Table(
        title="All", seeds=(4, 2),
        rows={
            "mine": Row(label="Mine", against=("a",), settings={"bias": True, "width": 2}),
            "deep": Row(label="Deep", against="all"),
        },
    )  # fmt: skip


@pytest.mark.parametrize(
    "content",
    [
        {"title": ""}, {"titel": "x"}, {"rows": 3}, {"rows": {"a": 3}}, {"seeds": 4},
        {"seeds": ["b"]}, {"seeds": [4, 4]}, {"rows": {"a": {"label": "A", "settings": {"b": []}}}},
        {"rows": {"a": {"label": "A", "against": 3}}}, {"rows": {"a": {}}},
    ],
)  # fmt: skip
def test_an_error_in_a_table_names_the_file_and_the_key(content: dict[str, Any]) -> None:
    with refused(BadInput) as caught:
        read_dataclass(Table, {"title": "All"} | content, at="own.toml: ")
    assert "own.toml: " in str(caught.value)


def test_an_unknown_preset_is_refused_with_those_there_are() -> None:
    assert preset_named({"fast": 1, "paper": 2}, "paper") == 2
    with refused(BadInput):
        preset_named({"fast": 1, "paper": 2}, "slow")


def test_differences_include_settings_that_only_one_has() -> None:
    assert differences({"a": 1}, {"a": 1, "b": "x" * 64}) == "b None, not xxxxxxxxxxxx"
    assert differences({"model": {"edges": [1.0]}}, {"model": {"edges": [1.0]}}) == ""
    assert differences({"model": {"width": 8}}, {"model": {"width": 16}}) == "model.width 8, not 16"
