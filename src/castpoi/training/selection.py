"""Which epoch is kept, when training ends, and the cheap ranks by which both are decided.

To choose an epoch of the fast objective, the reader reads only a shortlist: the best places by all
other terms and its forecast. All others stand below it. Evaluation never ranks this way.

Shapes: B histories, P places, M shortlisted places.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray

from castpoi.checkins.trajectory import Histories
from castpoi.core.errors import BadInput
from castpoi.evaluation.metrics import Metrics
from castpoi.methods.ranker import Abilities
from castpoi.model.batch import BatchBuilder
from castpoi.model.castpoi import CastPoi, Encoded
from castpoi.model.scoring import ExactScorer
from castpoi.training.plan import Plan

SHORTLIST: Final = 256
"""Candidates that the reader reads to choose an epoch."""


class ShortlistRanker:
    """Ranks places with a model still in training; exact among the best, cheap for the rest."""

    def __init__(self, model: CastPoi, builder: BatchBuilder, *, size: int = SHORTLIST) -> None:
        self.model = model
        self.builder = builder
        self.scorer = ExactScorer(model)
        self.size = min(size, model.place_count)

    @property
    def places(self) -> int:
        """Number of places in the vocabulary, P."""
        return self.model.place_count

    @property
    def abilities(self) -> Abilities:
        """Those of the model, which are asked for when it validates."""
        config = self.model.config
        return Abilities(needs_next_time=config.known_time, most_visits=config.most_visits)

    @torch.inference_mode()
    def encode(self, histories: Histories) -> Encoded:
        """Read a batch of histories once, before any place is scored."""
        batch = self.builder.build(histories)
        return self.model.encode(batch.to(self.model.popularity.device), self.scorer.places)

    @torch.inference_mode()
    def score(
        self, encoded: Encoded, candidates: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        """Score every place for each history. [B, P]"""
        if candidates is not None:
            raise BadInput("a shortlist is drawn from all places; ask for all, not for candidates")
        scores = self.scorer.foretold(encoded)  # [B, P]
        shortlist = scores.topk(self.size, dim=1, sorted=False).indices  # [B, M]
        exact = self.scorer.score(encoded, shortlist + 1)
        # only differences between places mean something, so scores with and without the reader
        # cannot be compared: all others stand below the shortlist, in their own order
        below = exact.amin(dim=1, keepdim=True) - scores.amax(dim=1, keepdim=True) - 1
        scores.add_(below).scatter_(1, shortlist, exact)
        array: NDArray[np.float32] = scores.float().cpu().numpy()
        return array


@dataclass(frozen=True, kw_only=True)
class EpochRecord:
    """What is known of an epoch when it has ended."""

    at_utc: str
    epoch: int
    """The first epoch is 1."""
    loss: float
    """Mean over its targets."""
    learning_rate: float
    """That of its last step."""
    metrics: Metrics
    """Of the validation part; empty where the city has none."""
    seconds: float
    """Wall time, validation included."""
    targets_per_second: float
    """While learning."""

    def to_dict(self) -> dict[str, Any]:
        """The record in JSON's words."""
        return asdict(self)


class Selection:
    """Remembers the best epoch and how long it has been the best."""

    def __init__(self, config: Plan) -> None:
        self.config = config
        self.best: EpochRecord | None = None
        self.waited = 0

    def note(self, record: EpochRecord) -> bool:
        """Take in an epoch and say whether it is the best so far."""
        if self._is_better(record):
            self.best, self.waited = record, 0
            return True
        if record.epoch > self.config.warmup_epochs:
            self.waited += 1
        return False

    def replay(self, records: Iterable[EpochRecord]) -> None:
        """Take in the epochs of a training that is resumed."""
        for record in records:
            self.note(record)

    @property
    def is_over(self) -> bool:
        """Whether the best epoch has been the best for too long."""
        return self.waited >= self.config.patience

    def _is_better(self, record: EpochRecord) -> bool:
        value = record.metrics.get(self.config.select_by)
        if self.best is None or value is None:  # without validation the last epoch is kept
            return True
        former = self.best.metrics[self.config.select_by]
        return former is None or value > former
