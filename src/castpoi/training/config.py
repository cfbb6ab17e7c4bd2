"""How a model is trained: steps, learning rate, loss and selection of the best epoch; the presets.

CaST-POI: `paper` is the published recipe exactly. `fast`, the default of `castpoi`, computes the
same loss at a fraction of the cost and selects the epoch by validation MRR, which is steadier than
HR@10. `next` trains `castpoi-next` in fewer and larger steps at a higher rate, two parts of a step
in parallel, and with stronger decay of place vectors: the visit-pattern features of known places
generalise better than vectors do.

Learned baselines: `paper` has the defaults of RecBole 1.2.1: Adam at a constant rate, no decay, up
to 300 epochs, patience 10. `tuned` trains like CaST-POI's fast preset, so that a comparison is
fair, with the values that a search on validation found for each model.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, Self

from castpoi.core.config import Config, Count, NotNegative, Positive, Range, Share, preset_named

ObjectiveName = Literal["fast", "full", "sampled"]
Fraction = Annotated[float, Range(0.0, 1.0, "a number from 0 to 1")]

TUNED: Final = "tuned"


@dataclass(frozen=True, kw_only=True)
class TrainingConfig(Config):
    """The settings of every training."""

    epochs: Count = 4
    """Largest number of passes over the train split."""
    batch: Count = 128
    """Targets per step; the fast objective counts windows instead."""
    learning_rate: Positive = 1e-3
    """Highest learning rate of AdamW, reached at the end of the warm-up."""
    final_rate: Fraction = 1e-3
    """Learning rate at the end of the cosine, as a fraction of the highest; 1 for a constant."""
    warmup_epochs: NotNegative = 1.0
    """Epochs of linear rise, or 0. Patience is counted after them."""
    schedule: Literal["epoch", "step"] = "step"
    """Whether the learning rate changes with every epoch (paper) or with every step."""
    weight_decay: NotNegative = 1e-4
    """Decay of all weights except the place vectors."""
    place_weight_decay: NotNegative = 0.3
    """Decay of the place vectors, which overfit a small city."""
    clip: Positive | None = 5.0
    """Largest norm of the gradient; longer ones are scaled down to it."""
    select_by: Literal["HR@10", "MRR"] = "MRR"
    """Validation metric that selects the best epoch."""
    patience: Count = 10
    """Epochs without improvement after which training ends, counted after the warm-up."""
    weight_averaging: Share = 0.999
    """Decay of the running mean of weights, which is validated and kept; 0 for no mean."""
    threads: Count | None = None
    """Cores to use; none for all."""


@dataclass(frozen=True, kw_only=True)
class CastPoiTraining(TrainingConfig):
    """The settings of a training of CaST-POI."""

    objective: ObjectiveName = "fast"
    """`full`: the paper's, every prefix against every place; `fast`: the same loss, cheaper;
    `sampled`: an estimate of it, for very many places, without a reader."""
    learn_from: Literal["all", "new"] = "all"
    """Targets to learn from: `all`, or the `new` ones since the run of `--from`."""
    windows_per_step: Count = 2
    """Windows per step of the fast objective."""
    window_targets: Count = 50
    """Maximum targets in a window of the fast objective, which also has `window` earlier visits."""
    step_parts: Count = 1
    """Parts of a step on the CPU, each computed by one core; 1: torch divides each operation."""
    hard_candidates: Count = 16
    """Fast objective: candidates of a target with the highest scores by the other terms."""
    drawn_candidates: Count = 20
    """Fast objective: candidates of a target sampled from all others, to represent these."""
    margin_weight: NotNegative = 0.25
    """Weight of the margin loss relative to the cross-entropy."""
    explore_weight: Positive = 1.0
    """Weight of a target at a place that its history has not visited."""

    @classmethod
    def preset(cls, name: str) -> "CastPoiTraining":
        """The preset `paper`, `fast` or `next`."""
        return preset_named(PRESETS, name)


@dataclass(frozen=True, kw_only=True)
class SequenceTraining(TrainingConfig):
    """The settings of a training of a learned baseline."""

    stride: Count = 25
    """Neighbouring targets of a long history that share a window; 1: none share, as in RecBole."""

    @classmethod
    def preset(cls, name: str, *, method: str = "") -> Self:
        """The preset `paper` or `tuned`; for a method, with the values found for it."""
        found = _FOUND.get(method, {}) if name == TUNED else {}
        return cls(**{**preset_named(_BASELINE_PRESETS, name), **found})


PRESETS: Final[Mapping[str, CastPoiTraining]] = {
    "paper": CastPoiTraining(
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
    "fast": CastPoiTraining(),
    "next": CastPoiTraining(
        windows_per_step=8,
        window_targets=100,
        step_parts=2,
        learning_rate=3e-3,
        place_weight_decay=1.7,
    ),
}
"""The presets of CaST-POI; the model config has presets of the same names."""

_BASELINE_PRESETS: Final[Mapping[str, dict[str, Any]]] = {
    "paper": {
        "epochs": 300,
        "batch": 2048,
        "final_rate": 1.0,
        "warmup_epochs": 0.0,
        "weight_decay": 0.0,
        "place_weight_decay": 0.0,
        "clip": None,
        "weight_averaging": 0.0,
    },
    TUNED: {"epochs": 12, "batch": 512, "patience": 5},
}

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
"""Values found by the search of docs/baselines.md; the dropout found is in the model's presets."""
