"""How a CaST-POI model is trained: objective, steps, schedule, loss, selection.

Three presets. `paper` is the published recipe to the letter. `fast`, that of `castpoi` unless told
otherwise, computes the same loss far more cheaply and is chosen by validation MRR, which is
steadier than HR@10. `next` trains the model of the same name as `fast` does, but keeps the vectors
of places shorter: habits tell more of a known place than a vector can, and do not learn anybody by
heart.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final, Literal

from castpoi.core.errors import BadInput
from castpoi.core.setting_check import (
    ABOVE_ZERO,
    NOT_NEGATIVE,
    SHARE,
    Range,
    check_setting,
    preset_named,
)

ObjectiveName = Literal["fast", "full"]
ScheduleUnit = Literal["epoch", "step"]
SelectBy = Literal["HR@10", "MRR"]


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """One way to train; refuses what makes no sense."""

    objective: ObjectiveName = "fast"
    """`full`: the paper's, every prefix against every place; `fast`: the same loss, cheaper."""
    epochs: int = 4
    """Most passes over the train part."""
    batch: int = 128
    """Prefixes a step of the full objective."""
    windows_a_step: int = 2
    """Windows a step of the fast objective; each has up to `window` targets."""
    hard_candidates: int = 16
    """Fast objective: candidates of a target that are the hardest by the other terms."""
    drawn_candidates: int = 20
    """Fast objective: candidates of a target drawn from all others, for which they stand."""

    learning_rate: float = 1e-3
    """Highest step size of AdamW, reached at the end of the warm-up."""
    final_learning_rate: float = 1e-6
    """Where the cosine after the warm-up ends."""
    warmup_epochs: float = 1.0
    """Epochs of linear rise; 0 for none. Patience is counted after them."""
    schedule: ScheduleUnit = "step"
    """Whether the learning rate changes with every epoch (paper) or with every step."""
    weight_decay: float = 1e-4
    """Decay of AdamW, for all weights but the place table."""
    place_weight_decay: float = 0.3
    """Decay of AdamW for the vectors of places, which a small city learns by heart."""
    clip: float = 5.0
    """Longest gradient; longer ones are shortened to it."""

    label_smoothing: float = 0.02
    """Share of the target's mass that is spread over all other places."""
    margin: float = 1.0
    """How far the target shall stand above its hardest rivals."""
    margin_weight: float = 0.25
    """Weight of the margin beside the cross-entropy; 0 for none."""
    hard_negatives: int = 10
    """Rivals in the margin: the highest-scoring places other than the target."""
    explore_weight: float = 1.0
    """Weight of a target at a place that its history does not know."""

    select_by: SelectBy = "MRR"
    """Validation metric by which the best epoch is kept."""
    patience: int = 10
    """Epochs without a better one after which training ends, counted after the warm-up."""
    weight_averaging: float = 0.999
    """Decay of the running mean of weights that is validated and kept; 0: the weights as such."""
    threads: int | None = None
    """Cores to use; none: all that torch sees."""

    def __post_init__(self) -> None:
        for field in fields(self):
            allowed = _ALLOWED.get(field.name, ABOVE_ZERO)
            check_setting(field.name, getattr(self, field.name), field.type, allowed)
        if self.final_learning_rate > self.learning_rate:
            raise BadInput(
                f"final_learning_rate={self.final_learning_rate} is above "
                f"learning_rate={self.learning_rate}; the rate can only fall after the warm-up"
            )

    def to_dict(self) -> dict[str, Any]:
        """The config in JSON's words."""
        return asdict(self)

    @classmethod
    def preset(cls, name: str) -> "TrainingConfig":
        """One of the presets, `paper`, `fast` or `next`."""
        return preset_named(PRESETS, name)


_ALLOWED: Final[Mapping[str, Range]] = {
    "warmup_epochs": NOT_NEGATIVE,
    "final_learning_rate": NOT_NEGATIVE,
    "weight_decay": NOT_NEGATIVE,
    "place_weight_decay": NOT_NEGATIVE,
    "label_smoothing": SHARE,
    "margin": NOT_NEGATIVE,
    "margin_weight": NOT_NEGATIVE,
    "weight_averaging": SHARE,
}
"""The settings that may be 0; all other numbers must be above it."""


PRESETS: Final[Mapping[str, TrainingConfig]] = {
    "paper": TrainingConfig(
        objective="full",
        epochs=50,
        warmup_epochs=3.0,
        schedule="epoch",
        place_weight_decay=1e-4,
        margin_weight=0.5,
        explore_weight=1.5,
        weight_averaging=0.0,
        select_by="HR@10",
    ),
    "fast": TrainingConfig(),
    "next": TrainingConfig(place_weight_decay=1.0),
}
"""The presets; the model has some of the same names."""
