"""The paper's objective, to the letter: every prefix of every train trajectory, every place.

One instance is a visit of the train part that has a visit before it; its history is all its user
did before in train. The reader reads it for every place of the city. To bound the memory this is
done for a few candidates at a time, whose intermediate values are forgotten and computed again
when the gradient comes back.

Shapes: B instances of a batch, P places, C candidates at once.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from castpoi.checkins.city import City
from castpoi.model.batch import BatchBuilder
from castpoi.model.castpoi import CastPoi, Encoded, Refinement
from castpoi.model.config import REVISIT_WINDOW, ModelConfig
from castpoi.training.config import CastPoiTraining
from castpoi.training.loss import mean_loss

CANDIDATES_AT_ONCE: Final = 32
"""Larger parts were not quicker on a CPU: what is written should be read again from its cache."""

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
        self.target_rows = self.trajectories.rows_with_history
        self.is_new = ~self.trajectories.is_revisit(self.target_rows, window=REVISIT_WINDOW)
        lat, lon = city.lat, city.lon
        self.builder = BatchBuilder(config=model, lat=lat, lon=lon)

    def batches(self, epoch: int) -> Sequence[Prefixes]:
        """All instances once, in an order that seed and epoch fix."""
        order = np.random.default_rng((self.seed, epoch)).permutation(len(self.target_rows))
        size = self.config.batch
        return [order[start : start + size] for start in range(0, len(order), size)]

    def targets(self, batch: Prefixes) -> int:
        """Number of instances in a batch."""
        return len(batch)

    def share(self, batch: Prefixes, rank: int, ranks: int) -> Prefixes:
        """What one of several processes learns from a batch; together they learn from all of it."""
        return batch[rank::ranks]

    def loss(self, model: nn.Module, batch: Prefixes) -> Tensor:
        """Mean loss over the instances of a batch."""
        assert isinstance(model, CastPoi)
        device = model.popularity.device
        rows = self.target_rows[batch]
        known_time = model.config.known_time
        histories = self.trajectories.histories_before(
            rows, known_time=known_time, most=model.config.most_visits
        )
        encoded = model.encode(self.builder.build(histories).to(device))
        scores = score_every_place(model, encoded, self.candidates_at_once)
        target = torch.from_numpy(self.trajectories.place[rows]).to(device)
        is_new = torch.from_numpy(self.is_new[batch]).to(device)
        return mean_loss(scores.float(), target, is_new, self.config)


def score_every_place(model: CastPoi, encoded: Encoded, candidates_at_once: int) -> Tensor:
    """The score of every place, with gradients and within bounded memory. -> [B, P]"""
    every_row = torch.arange(1, model.place_count + 1, device=encoded.state.device)
    places = encoded.places
    every = places.of(every_row)  # [P, D]
    base = torch.addmm(places.popularity[1:], encoded.state, every.mT)  # [B, P]
    scores = base + model.revisit(encoded)[:, 1:]  # [B, P]
    if model.distance_gate is not None:
        scores = scores + model.distance(encoded)
    refinement = model.refinement
    if refinement is None:
        return scores
    if model.place_count <= candidates_at_once:
        return scores + _read(model, refinement, encoded, every_row)
    parts = [
        checkpoint(_read, model, refinement, encoded, rows, use_reentrant=False)
        for rows in every_row.split(candidates_at_once)
    ]
    return scores + torch.cat(parts, dim=1)


def _read(model: CastPoi, refinement: Refinement, encoded: Encoded, rows: Tensor) -> Tensor:
    """The reader's term for candidates shared by all histories. [C] -> [B, C]"""
    candidates = rows.expand(len(encoded), -1)  # [B, C]
    buckets = model.distances(encoded.row, candidates)  # [B, C, T]
    vectors = encoded.places.of(rows).expand(len(encoded), -1, -1)  # [B, C, D]
    term: Tensor = refinement(vectors, encoded, buckets)[0]
    return term
