"""Settings as dataclasses: each field is a setting, read and checked by its type.

    @dataclass(frozen=True, kw_only=True)
    class ModelConfig(Config):
        width: Size = 128
        dropout: Share = 0.2

A value may be a Python object, text (`--set width=64`), TOML or JSON. It is checked when the config
is created, so a config that exists is valid.
"""

import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass, replace
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    Literal,
    NamedTuple,
    Self,
    TypeVar,
    Union,
    get_args,
    get_origin,
)  # fmt: skip

from castpoi.core.errors import BadInput, did_you_mean

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T")
Model = TypeVar("Model", bound="DataclassInstance")
Training = TypeVar("Training", bound="DataclassInstance")


class Range(NamedTuple):
    """Smallest and largest value of a number, and the rule in words."""

    least: float
    most: float
    rule: str


_UNREADABLE: Final = (AttributeError, KeyError, OverflowError, TypeError, ValueError)
_TINY: Final = math.nextafter(0.0, 1.0)
_BELOW_ONE: Final = math.nextafter(1.0, 0.0)

Positive = Annotated[float, Range(_TINY, math.inf, "a number above 0")]
NotNegative = Annotated[float, Range(0.0, math.inf, "a number of at least 0")]
Share = Annotated[float, Range(0.0, _BELOW_ONE, "a number of at least 0 and below 1")]
Count = Annotated[int, Range(1, math.inf, "a whole number of at least 1")]
Size = Annotated[int, Range(1, 2048, "a whole number from 1 to 2048")]
"""Size of one layer of a model: a larger number is a typing error that would fill the memory."""
Layers = Annotated[int, Range(1, 32, "a whole number from 1 to 32")]
Seed = Annotated[int, Range(0, 2**32 - 1, f"a whole number from 0 to {2**32 - 1}")]


@dataclass(frozen=True, kw_only=True)
class Config:
    """Base of the settings of one thing; refuses values that do not follow their type."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if read_value(value, field.type, field.name) != value:
                raise _invalid(field.name, value, field.type)

    def to_dict(self) -> dict[str, Any]:
        """The settings by name, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """A config from JSON or TOML; missing settings keep their defaults."""
        return read_dataclass(cls, content)


def read_dataclass(kind: type[T], content: Mapping[str, Any], *, at: str = "") -> T:
    """A dataclass from a table of TOML or JSON; `at` precedes the names in errors."""
    assert is_dataclass(kind)
    known = {field.name: field for field in fields(kind)}
    for name in content:
        if name not in known:
            raise BadInput(
                f"{at}{name} is not a setting; {did_you_mean(name, known)}the settings are "
                f"{', '.join(known)}"
            )
    for name, field in known.items():
        if name not in content and field.default is field.default_factory is MISSING:
            raise BadInput(f"{at}{name} is missing; it must be {rule_of(field.type)}")
    values = {name: read_value(each, known[name].type, at + name) for name, each in content.items()}
    return kind(**values)


def read_value(value: Any, kind: Any, name: str) -> Any:
    """The value as `kind`, the type of a field; text is parsed. `name` is used in errors."""
    try:
        return _read(value, kind, name)
    except _UNREADABLE:
        raise _invalid(name, value, kind) from None


def text_of(value: object) -> str:
    """A setting as text, as in `castpoi train --set`, which `read_value` reads."""
    if isinstance(value, list | tuple):
        return ",".join(map(text_of, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _read(value: Any, kind: Any, name: str) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        number, (least, most, _) = _read(value, inner[0], name), inner[1]
        return number if least <= number <= most else _refuse()
    if origin in (Union, UnionType):
        for each in inner:
            with suppress(*_UNREADABLE):
                return _read(value, each, name)
        _refuse()
    if origin is Literal:
        return value if value in inner else _refuse()
    if origin is tuple:
        return _read_list(value, inner[0], name)
    if origin is dict:
        return {key: read_value(each, inner[1], f"{name}.{key}") for key, each in value.items()}
    if isinstance(kind, type) and is_dataclass(kind):
        return value if isinstance(value, kind) else read_dataclass(kind, value, at=f"{name}.")
    return _SCALARS[kind](value)


def _read_list(value: Any, kind: Any, name: str) -> tuple[Any, ...]:
    """A tuple of distinct values from a list, or from text with commas between them."""
    values = value.split(",") if isinstance(value, str) else value
    found = tuple(
        read_value(each.strip() if isinstance(each, str) else each, kind, f"an entry of {name}")
        for each in values
    )
    if twice := [each for each in found if found.count(each) > 1]:
        raise BadInput(f"{name} contains {twice[0]!r} twice; leave one out")
    return found


def _refuse() -> Any:
    raise ValueError


def _truth(value: Any) -> bool:
    return value if isinstance(value, bool) else {"true": True, "false": False}[value.lower()]


def _whole(value: Any) -> int:
    return int(value) if type(value) in (int, str) else _refuse()


def _number(value: Any) -> float:
    number = float(value) if type(value) in (int, float, str) else math.nan
    return number if math.isfinite(number) else _refuse()


def _text(value: Any) -> str:
    return value if isinstance(value, str) and value else _refuse()


def _none(value: Any) -> None:
    if value is not None and value.lower() != "none":
        _refuse()


_SCALARS: Final[Mapping[Any, Any]] = {
    bool: _truth, int: _whole, float: _number, str: _text, NoneType: _none,
}  # fmt: skip
_RULES: Final[Mapping[Any, str]] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    NoneType: "none",
    tuple: "a list",
    dict: "a table",
}


def rule_of(kind: Any) -> str:
    """The rule of a setting in words, from its type."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return str(inner[1].rule)
    if origin in (Union, UnionType):
        return ", or ".join(map(rule_of, inner))
    if origin is Literal:
        return " or ".join(map(repr, inner))
    return _RULES.get(origin or kind, "a table")


def _invalid(name: str, value: Any, kind: Any) -> BadInput:
    return BadInput(f"{name}={value!r} is not valid; it must be {rule_of(kind)}")


def pairs_of(words: Iterable[str]) -> dict[str, str]:
    """Settings from words like `width=64`; each may appear once."""
    settings: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.strip():
            raise BadInput(f"setting '{word}' is not of the form name=value, for instance width=64")
        if name.strip() in settings:
            raise BadInput(f"setting '{name.strip()}' is given twice; give it once")
        settings[name.strip()] = value.strip()
    return settings


def changed(
    model: Model, training: Training, settings: Mapping[str, object]
) -> tuple[Model, Training]:
    """The configs of a model and its training with some settings changed."""
    of_model, of_training = (
        {each.name: each.type for each in fields(c)} for c in (model, training)
    )
    known = of_model | of_training
    for name in settings:
        if name not in known:
            raise BadInput(
                f"there is no setting '{name}'; {did_you_mean(name, known)}'castpoi methods NAME' "
                "lists the settings of a method"
            )
    values = {name: read_value(value, known[name], name) for name, value in settings.items()}
    return (
        replace(model, **{name: value for name, value in values.items() if name in of_model}),
        replace(training, **{name: value for name, value in values.items() if name in of_training}),
    )


def preset_named(presets: Mapping[str, T], name: str) -> T:
    """The preset of this name."""
    if name not in presets:
        raise BadInput(f"there is no preset {name!r}; choose {' or '.join(presets)}")
    return presets[name]


def differences(one: Mapping[str, Any], other: Mapping[str, Any], within: str = "") -> str:
    """Differences of two nested mappings as text, like `seed 1, not 2`; empty if equal."""
    found = []
    for name in sorted({*one, *other}):
        mine, theirs = one.get(name), other.get(name)
        if isinstance(mine, Mapping) and isinstance(theirs, Mapping):
            found.append(differences(mine, theirs, f"{within}{name}."))
        elif mine != theirs:
            texts = [text if len(text) <= 20 else text[:12] for text in (str(mine), str(theirs))]
            found.append(f"{within}{name} {', not '.join(texts)}")
    return "; ".join(filter(None, found))
