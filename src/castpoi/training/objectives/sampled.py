"""The sampled objective: the loss of the fast one, at a cost independent of the number of places.

The sum of exp(s) over all places is exact for the target and the known places of a history, whose
scores are highest, and estimated for all others from places drawn in three ways:

    popular    from the check-ins of the train split          shared by the targets of a step
    uniform    from all places                                shared
    near       from the 129 and the 8,193 places nearest to the last place and to home, along a
               curve through space                            for each target

Near places have to be drawn: the distance gate raises their scores, and otherwise could do so
without a penalty. Each draw is weighted by one over the expected number of draws of its place in
all ways together (log-Q correction), so the estimate of the sum has no bias.

The model receives only the places that a step needs: those of its windows, the known and the drawn
ones. Only their rows of the place table are read and changed (`training/rows.py`). The hard
negatives of the margin and the mean score of label smoothing also use known and drawn places only.

Shapes: S slots of all windows, R targets of a batch, U places of a step, M shared draws, C draws of
a target, E (target, known place) pairs, Q most known places of one target, A anchors, P places.
"""

from dataclasses import replace
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from castpoi.checkins.city import City
from castpoi.core.arrays import Numbers, ranges
from castpoi.geo.distance import unit_vectors
from castpoi.model.castpoi import CastPoi
from castpoi.model.config import ModelConfig
from castpoi.model.features.known import KnownPairs
from castpoi.model.index import neighbours
from castpoi.model.places import NO_PLACE, PlaceTable
from castpoi.model.terms.base import ScoreInputs
from castpoi.model.terms.distance import DistanceGate
from castpoi.training.config import CastPoiTraining
from castpoi.training.objectives.fast import FastBatch, FastObjective, is_new_place
from castpoi.training.rows import SparseRows

POPULAR: Final = 768
"""Shared places drawn by popularity."""
UNIFORM: Final = 256
"""Shared places drawn uniformly."""
NEAR: Final = 32
"""Number of places drawn near each anchor of a target, within each reach."""
REACHES: Final = (64, 4096)
"""Near places are drawn from this many before and after an anchor, along the curve."""
DRAWS: Final = 4 * NEAR
"""Places drawn for one target: two anchors times two reaches."""
_CURVE: Final = 16  # neighbouring places whose order on the curve is arbitrary


class PlaceDraws:
    """Draws places, and computes their expected number of draws."""

    def __init__(
        self, lat: NDArray[np.float64], lon: NDArray[np.float64], visited: Numbers
    ) -> None:
        """Coordinates of all places [P], and the place of every train check-in. [N]"""
        self.places = len(lat)
        self.visited = visited
        self.frequency = np.bincount(visited, minlength=self.places) / len(visited)  # [P]
        order = neighbours(unit_vectors(lat, lon), np.arange(self.places), _CURVE)
        self.along = np.concatenate(order)  # places along a curve [P]
        self.position = np.argsort(self.along)  # of each place on the curve [P]
        self.reaches = [min(reach, (self.places - 1) // 2) for reach in REACHES]

    def shared(self, rng: np.random.Generator) -> tuple[Numbers, Numbers]:
        """Places drawn for all targets, each once, and how often each was drawn. [M], [M]"""
        popular = rng.choice(self.visited, POPULAR)
        uniform = rng.integers(self.places, size=UNIFORM)
        return np.unique(np.concatenate([popular, uniform]), return_counts=True)

    def near(self, anchors: Numbers, rng: np.random.Generator) -> Numbers:
        """Places near the anchors of each target. [R, A] -> [R, A x reaches x NEAR]"""
        position = self.position[anchors]  # [R, A]
        steps = [
            rng.integers(-reach, reach + 1, size=(*anchors.shape, NEAR)) for reach in self.reaches
        ]
        positions = position[..., None] + np.concatenate(steps, axis=2)  # [R, A, reaches x NEAR]
        return self.along[positions.reshape(len(anchors), -1) % self.places]

    def expected(self, anchors: Numbers, drawn: Numbers) -> NDArray[np.float64]:
        """Expected number of draws of places, of each target or shared. [R, A], [C] -> [R, C]"""
        expected = POPULAR * self.frequency[drawn] + UNIFORM / self.places
        position = self.position[drawn]  # [R, C] or [C]
        for anchor in anchors.T:
            apart = np.abs(position - self.position[anchor][:, None])  # [R, C]
            apart = np.minimum(apart, self.places - apart)  # the curve is closed
            for reach in self.reaches:
                expected = expected + (apart <= reach) * (NEAR / (2 * reach + 1))
        return expected


class SampledObjective(FastObjective):
    """Like `FastObjective`, with known and drawn places instead of all places."""

    def __init__(
        self, city: City, *, model: ModelConfig, config: CastPoiTraining, seed: int
    ) -> None:
        super().__init__(city, model=model, config=config, seed=seed)
        self.draws = PlaceDraws(city.lat, city.lon, self.place)
        self.rows = SparseRows(
            {"place.weight": config.place_weight_decay, "popularity": config.weight_decay}
        )

    def loss(self, model: nn.Module, batch: FastBatch) -> Tensor:
        """Mean loss over the targets of a batch."""
        assert isinstance(model, CastPoi)
        rng = np.random.default_rng(np.random.SeedSequence(batch.seed))
        layout = self._layout(self.windows.chosen(batch.windows))
        pairs = self.known.of(layout.visit)
        target = self.place[layout.visit + 1]  # [R]
        anchors = np.stack([self.place[layout.visit], pairs.home], axis=1)  # [R, A]
        shared, count = self.draws.shared(rng)
        near = self.draws.near(anchors, rng)
        expected = [self.draws.expected(anchors, drawn) for drawn in (near, shared)]
        log_weight = np.concatenate([-np.log(expected[0]), np.log(count / expected[1])], axis=1)

        visited = np.concatenate([group.place.flatten().numpy() for group in layout.groups])  # [S]
        used = np.unique(np.r_[visited[visited >= 0], pairs.place, target, near.ravel(), shared])
        places = _Places(used, self.rows)
        groups = (replace(each, place=places.local(each.place.numpy())) for each in layout.groups)
        states = torch.cat([model.states(each, places.table).flatten(0, 1) for each in groups])
        inputs = ScoreInputs(
            state=states[torch.from_numpy(layout.slot)],  # [R, D]
            known=replace(pairs.tensors(), place=places.local(pairs.place)),
            anchors=torch.from_numpy(anchors),
            table=places.table,
        )
        own = np.concatenate([target[:, None], near], axis=1)
        scores = torch.cat([places.own(inputs, own), places.shared(inputs, shared)], dim=1)
        scores = scores + _nearness(model, inputs, own, shared)
        known = places.known(inputs) + _of_known(model, inputs, pairs.place)  # [E]

        is_left_out = np.zeros((len(target), len(used)), dtype=np.bool_)  # from the draws [R, U]
        local = places.local
        is_left_out[pairs.owner, local(pairs.place)] = True
        is_left_out[np.arange(len(target)), local(target)] = True
        left_out = [is_left_out[np.arange(len(near))[:, None], local(near)]]
        left_out.append(is_left_out[:, local(shared)])
        log_weight[np.concatenate(left_out, axis=1)] = -np.inf
        weight = np.where(is_new_place(target, pairs), self.config.explore_weight, 1.0)
        return self._mean_loss(
            scores,
            torch.from_numpy(log_weight.astype(np.float32)),
            known,
            pairs,
            target,
            torch.from_numpy((weight / len(target)).astype(np.float32)),
        )

    def _mean_loss(
        self,
        scores: Tensor,
        log_weight: Tensor,
        known: Tensor,
        pairs: KnownPairs,
        target: Numbers,
        weight: Tensor,
    ) -> Tensor:
        """The loss from scores of the target and the draws, and of known places.

        [R, 1 + C], [R, C], [E], [E], [R], [R] -> scalar
        """
        owner = torch.from_numpy(pairs.owner)
        is_target = torch.from_numpy(pairs.place == target[pairs.owner])  # [E]
        slot = torch.from_numpy(ranges(np.diff(pairs.bounds)))
        slots = int(np.diff(pairs.bounds).max())
        others = scores.new_full((len(target), slots), -torch.inf)  # [R, Q]
        others = others.index_put((owner, slot), known.masked_fill(is_target, -torch.inf))
        own = scores[:, 0].index_put((owner[is_target],), known[is_target])  # [R]
        drawn = scores[:, 1:]  # [R, C]
        total = torch.cat([own[:, None], drawn + log_weight, others], dim=1).logsumexp(dim=1)
        weights = log_weight.exp()  # [R, C]
        summed = (weights * drawn).sum(dim=1)  # of all places but the target [R]
        summed = summed.index_add(0, owner, known.masked_fill(is_target, 0.0))
        places = weights.sum(dim=1).index_add(0, owner, (~is_target).float())  # nearly P - 1
        constants = self.constants
        negatives = torch.cat([drawn.masked_fill(weights == 0, -torch.inf), others], dim=1)
        hardest = negatives.topk(min(constants.hard_negatives, negatives.shape[1]), dim=1).values
        short = (constants.margin - own[:, None] + hardest).clamp(min=0).sum(dim=1)
        loss = (
            total
            - (1 - constants.label_smoothing) * own
            - constants.label_smoothing * summed / places.clamp(min=1)
            + constants.margin_weight / constants.hard_negatives * short
        )
        return (weight * loss).sum()


class _Places:
    """The rows of the place table that a step uses, renumbered from 0."""

    def __init__(self, used: Numbers, rows: SparseRows) -> None:
        """`used` has the places of the step, each once, in order. [U]"""
        self.used = used
        leaves = rows.take(torch.from_numpy(used + 1))
        self.table = PlaceTable(
            vectors=functional.pad(leaves["place.weight"], (0, 0, 1, 0)),  # [U + 1, D]
            popularity=functional.pad(leaves["popularity"], (1, 0)),  # [U + 1]
        )

    def local(self, places: NDArray[np.integer]) -> Tensor:
        """The numbers of places within the step; NO_PLACE stays. [...] -> [...]"""
        found = np.searchsorted(self.used, places)
        return torch.from_numpy(np.where(places == NO_PLACE, NO_PLACE, found))

    def own(self, inputs: ScoreInputs, candidates: Numbers) -> Tensor:
        """Base score and popularity of each history's own candidates. [R, C] -> [R, C]"""
        local = self.local(candidates)
        base = (self.table.of(local) @ inputs.state.unsqueeze(2)).squeeze(2)  # [R, C]
        return base + self.table.popularity[local + 1]

    def shared(self, inputs: ScoreInputs, candidates: Numbers) -> Tensor:
        """The same of candidates that all histories share. [M] -> [R, M]"""
        local = self.local(candidates)
        return torch.addmm(self.table.popularity[local + 1], inputs.state, self.table.of(local).mT)

    def known(self, inputs: ScoreInputs) -> Tensor:
        """The same of known places. -> [E]"""
        owner, local = inputs.known.owner, inputs.known.place
        base = (self.table.of(local) * inputs.state[owner]).sum(dim=1)  # [E]
        return base + self.table.popularity[local + 1]


def _nearness(model: CastPoi, inputs: ScoreInputs, own: Numbers, shared: Numbers) -> Tensor:
    """The distance term; candidates have the numbers of the city. [R, C], [M] -> [R, C + M]"""
    gate = dict(model.named_terms()).get("distance")
    if not isinstance(gate, DistanceGate):
        return inputs.state.new_zeros(len(own), own.shape[1] + len(shared))
    cells = gate.cells(inputs.anchors, torch.from_numpy(own))
    index = gate.index(inputs, torch.from_numpy(shared)).long()
    return gate.compact(inputs).gather(1, torch.cat([cells, index], dim=1))


def _of_known(model: CastPoi, inputs: ScoreInputs, places: NDArray[np.int32]) -> Tensor:
    """Revisit and distance term of known places, by their numbers of the city. [E] -> [E]"""
    owner, terms = inputs.known.owner, dict(model.named_terms())
    values = inputs.state.new_zeros(len(owner))
    if "revisit" in terms:
        values = values + terms["revisit"].compact(inputs)
    gate = terms.get("distance")
    if isinstance(gate, DistanceGate):
        place = torch.from_numpy(places.astype(np.int64)).unsqueeze(1)  # [E, 1]
        cell = gate.cells(inputs.anchors[owner], place).squeeze(1)  # [E]
        values = values + gate.compact(inputs)[owner, cell]
    return values
