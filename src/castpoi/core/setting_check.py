"""Settings of a config, checked by the type of their field; and the names that a config knows."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import fields
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, get_args

from castpoi.core.errors import BadInput

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Config = TypeVar("Config")


class Range(NamedTuple):
    """Least and most of a number, and how a person is told."""

    least: float
    most: float
    words: str


ABOVE_ZERO: Final = Range(math.nextafter(0.0, 1.0), math.inf, "a number above 0")
NOT_NEGATIVE: Final = Range(0.0, math.inf, "a number of at least 0")
SHARE: Final = Range(0.0, math.nextafter(1.0, 0.0), "a number of at least 0 and below 1")

_MOST_LAYERS: Final = 32
_MOST_SIZE: Final = 2048


def largest_size(name: str) -> int:
    """Largest whole number in the shape of a model: a typing error above it fills the memory."""
    return _MOST_LAYERS if name.endswith(("layers", "steps")) else _MOST_SIZE


def check_setting(
    name: str, value: Any, kind: Any, allowed: Range = ABOVE_ZERO, *, most: int | None = None
) -> None:
    """Refuse a setting of the wrong kind, or a number outside of what is allowed.

    `allowed` is the range of a float, `most` the largest value of a whole number.
    """
    may_be_none = NoneType in get_args(kind)
    if may_be_none and value is None:
        return
    plain = get_args(kind)[0] if may_be_none else kind
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if plain is int:
        is_right = is_number and isinstance(value, int) and value >= 1
        is_right = is_right and (most is None or value <= most)
        rule = "a whole number " + ("of at least 1" if most is None else f"from 1 to {most}")
    elif plain is bool:
        is_right, rule = isinstance(value, bool), "true or false"
    elif plain is float:
        is_right = is_number and math.isfinite(value) and allowed.least <= value <= allowed.most
        rule = allowed.words
    else:
        is_right = value in get_args(plain)
        rule = " or ".join(map(repr, get_args(plain)))
    refuse_unless(is_right, name, value, f"{rule}, or none" if may_be_none else rule)


def refuse_unless(is_right: bool, name: str, value: Any, rule: str) -> None:
    """Refuse a setting that does not follow its rule."""
    if not is_right:
        raise BadInput(f"{name}={value!r} is not valid; it must be {rule}")


def check_known(config: type["DataclassInstance"], names: Iterable[str]) -> None:
    """Refuse names that a model's config does not have."""
    known = [field.name for field in fields(config)]
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise BadInput(
            f"a model has no setting {', '.join(map(repr, unknown))}; "
            f"its settings are {', '.join(known)}"
        )


def preset_named(presets: Mapping[str, Config], name: str) -> Config:
    """One of some presets."""
    if name not in presets:
        raise BadInput(f"there is no preset {name!r}; choose {' or '.join(presets)}")
    return presets[name]
