"""What the shape of every sequence model says: its width, its window, and what it refuses.

A model's file extends `SequenceConfig` by fields of its own, all with defaults, and names its
presets: `paper` (the defaults of RecBole 1.2.1, with which the paper trained it) and `tuned`
(as wide as CaST-POI, so that a comparison is fair).
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from castpoi.core.setting_check import (
    ABOVE_ZERO,
    NOT_NEGATIVE,
    SHARE,
    Range,
    check_known,
    check_setting,
    largest_size,
    preset_named,
)


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
            name, value = field.name, getattr(self, field.name)
            check_setting(name, value, field.type, allowed_range(name), most=largest_size(name))

    @classmethod
    @abstractmethod
    def presets(cls) -> Mapping[str, Self]:
        """The presets by name: `paper` and `tuned`."""

    @classmethod
    def preset(cls, name: str) -> Self:
        """One of the presets."""
        return preset_named(cls.presets(), name)

    def to_dict(self) -> dict[str, Any]:
        """The config in JSON's words."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """A config from JSON's or TOML's words; what is left out keeps its default."""
        check_known(cls, content)
        return cls(**content)


def allowed_range(name: str) -> Range:
    """A share is below 1; a decay, a weight or a warm-up may be 0; all else is above 0."""
    if name.endswith(("dropout", "share", "averaging")):
        return SHARE
    return NOT_NEGATIVE if name.endswith(("decay", "weight", "warmup_epochs")) else ABOVE_ZERO
