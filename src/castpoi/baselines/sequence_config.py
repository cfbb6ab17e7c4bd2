"""What the shape of every sequence model says: its width, its window, and what it refuses.

A model's file extends `SequenceConfig` by fields of its own, all with defaults, and names its
presets: `paper` (the defaults of RecBole 1.2.1, with which the paper trained it) and `tuned`
(as wide as CaST-POI, so that a comparison is fair).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from types import NoneType
from typing import Any, Self, get_args

from castpoi.errors import BadInput


@dataclass(frozen=True, kw_only=True)
class SequenceConfig(ABC):
    """The shape of one sequence model; refuses what cannot be built."""

    width: int = 64
    """Size of the vector of a place."""
    window: int = 50
    """Last visits of a history that are read."""
    padding_class: bool = False
    """Whether padding is one more class of the loss, as it is in RecBole."""

    def __post_init__(self) -> None:
        for field in fields(self):
            check_setting(field.name, getattr(self, field.name), field.type)

    @classmethod
    @abstractmethod
    def presets(cls) -> Mapping[str, Self]:
        """The presets by name: `paper` and `tuned`."""

    @classmethod
    def preset(cls, name: str) -> Self:
        """One of the presets."""
        presets = cls.presets()
        if name not in presets:
            raise BadInput(f"there is no preset {name!r}; choose {' or '.join(presets)}")
        return presets[name]

    def to_dict(self) -> dict[str, Any]:
        """The config in JSON's words."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """A config from JSON's or TOML's words; what is left out keeps its default."""
        known = [field.name for field in fields(cls)]
        unknown = sorted(set(content) - set(known))
        if unknown:
            raise BadInput(
                f"a model has no setting {', '.join(map(repr, unknown))}; "
                f"its settings are {', '.join(known)}"
            )
        return cls(**content)


def check_setting(name: str, value: Any, kind: Any) -> None:
    """Refuse a setting of the wrong kind or outside its range."""
    may_be_none = NoneType in get_args(kind)
    if may_be_none and value is None:
        return
    plain = get_args(kind)[0] if may_be_none else kind
    if plain is int:
        is_right = isinstance(value, int) and not isinstance(value, bool) and value >= 1
        rule = "a whole number of at least 1"
    elif plain is bool:
        is_right = isinstance(value, bool)
        rule = "true or false"
    elif plain is float:
        is_right, rule = _check_number(name, value)
    else:
        is_right = value in get_args(plain)
        rule = " or ".join(map(repr, get_args(plain)))
    if not is_right:
        rule += ", or none" if may_be_none else ""
        raise BadInput(f"{name}={value!r} is not valid; it must be {rule}")


def _check_number(name: str, value: Any) -> tuple[bool, str]:
    """A share is below 1; a decay, a weight or a warm-up may be 0; all else is above 0."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    is_finite = is_number and math.isfinite(value)
    if name.endswith(("dropout", "share", "averaging")):
        return is_finite and 0 <= value < 1, "a number of at least 0 and below 1"
    if name.endswith(("decay", "weight", "warmup_epochs")):
        return is_finite and value >= 0, "a number of at least 0"
    return is_finite and value > 0, "a number above 0"
