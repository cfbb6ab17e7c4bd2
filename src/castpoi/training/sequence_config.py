"""How a learned baseline is trained: steps, schedule, selection, and how its histories are cut.

Two presets. `paper` is RecBole 1.2.1 as it comes: Adam at one rate, no decay, up to 300 epochs,
stopped after ten without a better validation value. `tuned` has the tools that CaST-POI's fast
preset has, so that a comparison is fair, and for each model what a search on validation found.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final, Self

from castpoi.baselines.sequence_config import allowed_range
from castpoi.core.errors import BadInput
from castpoi.core.setting_check import check_setting, preset_named
from castpoi.training.config import ScheduleUnit, SelectBy


@dataclass(frozen=True, kw_only=True)
class SequenceTrainingConfig:
    """One way to train a sequence model; refuses what makes no sense."""

    epochs: int = 300
    """Most passes over the train part."""
    batch: int = 2048
    """Targets a step, give or take the half of a window."""
    stride: int = 25
    """Visits of a long history that learn in one window; 1: each sees all it may, as in RecBole."""

    learning_rate: float = 1e-3
    """Highest step size of AdamW, which without decay is Adam."""
    final_rate: float = 1.0
    """Where the cosine after the warm-up ends, as a part of `learning_rate`; 1: it never falls."""
    warmup_epochs: float = 0.0
    """Epochs of linear rise; 0 for none. Patience is counted after them."""
    schedule: ScheduleUnit = "step"
    """Whether the learning rate changes with every epoch or with every step."""
    weight_decay: float = 0.0
    """Decay of AdamW, for all weights but the place table."""
    place_weight_decay: float = 0.0
    """Decay of AdamW for the vectors of places."""
    clip: float | None = None
    """Longest gradient; longer ones are shortened to it."""

    select_by: SelectBy = "MRR"
    """Validation metric by which the best epoch is kept (RecBole's is MRR@10)."""
    patience: int = 10
    """Epochs without a better one after which training ends, counted after the warm-up."""
    weight_averaging: float = 0.0
    """Decay of the running mean of weights that is validated and kept; 0: the weights as such."""
    threads: int | None = None
    """Cores to use; none: all that torch sees."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            check_setting(field.name, value, field.type, allowed_range(field.name))
        if self.final_rate > 1:
            raise BadInput(
                f"final_rate={self.final_rate} is above 1; the rate can only fall after the warm-up"
            )

    @property
    def final_learning_rate(self) -> float:
        """The learning rate at the end."""
        return self.final_rate * self.learning_rate

    def to_dict(self) -> dict[str, Any]:
        """The config in JSON's words."""
        return asdict(self)

    @classmethod
    def preset(cls, name: str, *, method: str | None = None) -> Self:
        """`paper` or `tuned`; that of a method has what was found for it."""
        found = _FOUND.get(method, {}) if method and name == TUNED else {}
        return cls(**preset_named(_PRESETS, name) | found)


TUNED: Final = "tuned"

_PRESETS: Final[Mapping[str, dict[str, Any]]] = {
    "paper": {},
    TUNED: {
        "epochs": 12,
        "batch": 512,
        "final_rate": 1e-3,
        "warmup_epochs": 1.0,
        "weight_decay": 1e-4,
        "place_weight_decay": 0.3,
        "clip": 5.0,
        "patience": 5,
        "weight_averaging": 0.999,
    },
}
"""What each preset changes; the models have presets of the same names."""

_FOUND: Final[Mapping[str, dict[str, Any]]] = {
    "bert4rec": {"epochs": 25, "learning_rate": 3e-3, "place_weight_decay": 0.1},
    "caser": {"learning_rate": 1.2e-2, "place_weight_decay": 0.03},
    "core": {"learning_rate": 4e-3},
    "esasrec": {"learning_rate": 8e-3},
    "narm": {"learning_rate": 4e-3, "place_weight_decay": 0.1},
    "sasrec": {"place_weight_decay": 1.0},
    "srgnn": {"learning_rate": 4e-3, "place_weight_decay": 0.1},
    "stamp": {"learning_rate": 4e-3, "place_weight_decay": 0.1},
}
"""What the search of docs/baselines.md found for a model; its dropout stands in its own presets."""
