"""What the loop needs to know of any training, whatever is trained.

`TrainingConfig` (CaST-POI) and `SequenceTrainingConfig` (the learned baselines) both say it.
"""

from typing import Any, Protocol

from castpoi.training.config import ScheduleUnit, SelectBy


class Plan(Protocol):
    """Steps, schedule and selection of one training."""

    @property
    def epochs(self) -> int:
        """Most passes over the train part."""

    @property
    def learning_rate(self) -> float:
        """Highest step size of AdamW."""

    @property
    def final_learning_rate(self) -> float:
        """Where the cosine after the warm-up ends."""

    @property
    def warmup_epochs(self) -> float:
        """Epochs of linear rise; patience is counted after them."""

    @property
    def schedule(self) -> ScheduleUnit:
        """Whether the learning rate changes with every epoch or with every step."""

    @property
    def weight_decay(self) -> float:
        """Decay of AdamW, for all weights but the place table."""

    @property
    def place_weight_decay(self) -> float:
        """Decay of AdamW for the vectors of places."""

    @property
    def clip(self) -> float | None:
        """Longest gradient; None: as long as it is."""

    @property
    def select_by(self) -> SelectBy:
        """Validation metric by which the best epoch is kept."""

    @property
    def patience(self) -> int:
        """Epochs without a better one after which training ends."""

    @property
    def weight_averaging(self) -> float:
        """Decay of the running mean of weights; 0 for none."""

    @property
    def threads(self) -> int | None:
        """Cores to use; None: all that torch sees."""

    def to_dict(self) -> dict[str, Any]:
        """The plan in JSON's words."""
