"""The paper's objective exactly: every prefix of every train trajectory, every place.

An instance is a visit of the train split that has a visit before it; its history is all earlier
train visits of its user. The reader reads it for every place of the city. To bound the memory this
is done for a few candidates at a time, whose intermediate values are discarded and computed again
for the gradient.

    L  = CE_eps(s, y) + lambda / k  sum over the k best others of [m - (s_y - s_c)]+

    CE_eps: the target has mass 1 - eps + eps / (P - 1), every other place eps / (P - 1)

A target at a place that its history does not contain has weight w_explore, any other 1. The loss of
a batch is the weighted sum over its targets divided by their *number* (not by the sum of weights),
so a step with more of such targets is a larger step. The fast objective computes the same loss in
one pass.

Shapes: B instances of a batch, P places, C candidates at once, k hardest others.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from castpoi.checkins.city import City
from castpoi.model.castpoi import CastPoi
from castpoi.model.config import REVISIT_WINDOW, ModelConfig
from castpoi.model.terms.base import Encoded, cheap_scores
from castpoi.model.terms.reader import Reader
from castpoi.model.windows import BatchBuilder
from castpoi.training.config import CastPoiTraining
from castpoi.training.objectives.fused_loss import LossConstants

CANDIDATES_AT_ONCE: Final = 32
"""Larger parts were not faster on a CPU: what is written should be read again from its cache."""

Prefixes = NDArray[np.int64]
"""A batch: instances by their number. [B]"""


class FullObjective:
    """Every prefix against every place."""

    def __init__(
        self,
        city: City,
        *,
        model: ModelConfig,
        config: CastPoiTraining,
        seed: int,
        candidates_at_once: int = CANDIDATES_AT_ONCE,
    ) -> None:
        self.config = config
        self.seed = seed
        self.candidates_at_once = candidates_at_once
        self.trajectories = city.train_trajectories
        self.target_rows = city.train.rows_with_history
        self.is_new = ~self.trajectories.is_revisit(self.target_rows, window=REVISIT_WINDOW)
        self.builder = BatchBuilder(config=model, lat=city.lat, lon=city.lon)

    def learn_since(self, at_us: int) -> None:
        """Learn only from the targets after an instant."""
        is_later = self.trajectories.at_us[self.target_rows] > at_us
        self.target_rows, self.is_new = self.target_rows[is_later], self.is_new[is_later]

    def batches(self, epoch: int) -> Sequence[Prefixes]:
        """All instances once, in an order fixed by seed and epoch."""
        order = np.random.default_rng((self.seed, epoch)).permutation(len(self.target_rows))
        size = self.config.batch
        return [order[start : start + size] for start in range(0, len(order), size)]

    def targets(self, batch: Prefixes) -> int:
        """Number of instances in a batch."""
        return len(batch)

    def share(self, batch: Prefixes, rank: int, ranks: int) -> Prefixes:
        """The part of a batch for one of several processes; together they have all of it."""
        return batch[rank::ranks]

    def loss(self, model: nn.Module, batch: Prefixes) -> Tensor:
        """Mean loss over the instances of a batch."""
        assert isinstance(model, CastPoi)
        device = model.popularity.device
        rows = self.target_rows[batch]
        histories = self.trajectories.histories_before(
            rows, known_time=model.config.known_time, most=model.config.max_visits
        )
        encoded = model.encode(self.builder.build(histories).to(device))
        scores = score_every_place(model, encoded, self.candidates_at_once)
        target = torch.from_numpy(self.trajectories.place[rows]).to(device)
        is_new = torch.from_numpy(self.is_new[batch]).to(device)
        return mean_loss(scores.float(), target, is_new, self.config)


def score_every_place(model: CastPoi, encoded: Encoded, candidates_at_once: int) -> Tensor:
    """The score of every place, with gradients and within bounded memory. -> [B, P]"""
    every = torch.arange(model.place_count, device=encoded.state.device)
    table = encoded.table
    scores = cheap_scores(
        encoded.state, table.of(every), table.popularity[1:], model.spreads(encoded)
    )
    reader = model.reader
    if reader is None:
        return scores
    if model.place_count <= candidates_at_once:
        return scores + _read(reader, encoded, every)
    parts = [
        checkpoint(_read, reader, encoded, places, use_reentrant=False)
        for places in every.split(candidates_at_once)
    ]
    return scores + torch.cat(parts, dim=1)


def _read(reader: Reader, encoded: Encoded, places: Tensor) -> Tensor:
    """The reader's term for candidates shared by all histories. [C] -> [B, C]"""
    return reader(encoded, places)[0]


def mean_loss(scores: Tensor, target: Tensor, is_new: Tensor, config: CastPoiTraining) -> Tensor:
    """Weighted mean of the loss over targets. [B, P], [B], [B] -> scalar"""
    constants = LossConstants(margin_weight=config.margin_weight)
    smoothing, others = constants.label_smoothing, scores.shape[1] - 1
    column = target.unsqueeze(1)  # [B, 1]
    log_probability = scores.log_softmax(dim=1)  # [B, P]
    of_target = log_probability.gather(1, column).squeeze(1)  # [B]
    share = smoothing / max(1, others)
    each = -(1 - smoothing) * of_target - share * log_probability.sum(dim=1)  # [B]
    negatives = min(constants.hard_negatives, others)
    if config.margin_weight and negatives:
        best = scores.scatter(1, column, -torch.inf).topk(negatives, dim=1).values  # [B, k]
        short = (constants.margin - scores.gather(1, column) + best).clamp(min=0).mean(dim=1)
        each = each + config.margin_weight * short
    weight = torch.where(is_new, config.explore_weight, 1.0).to(each)
    return (weight * each).sum() / len(target)
