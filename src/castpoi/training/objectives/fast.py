"""The fast objective: the paper's loss for all positions of a window at once.

All terms but the reader's are trained by every target against the full vocabulary; the reader is
trained by a few candidates of each (see `fused_loss.py`). The model and its exact scorer are the
same as with the full objective.

Shapes: B windows, T slots, S slots of all windows, R targets of a batch, C candidates, L visits
read, D width, P places.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from castpoi.checkins.city import City
from castpoi.core.arrays import pad_left
from castpoi.model.castpoi import CastPoi
from castpoi.model.config import ModelConfig
from castpoi.model.features.known import KnownPairs
from castpoi.model.terms.base import ScoreInputs
from castpoi.model.terms.reader import Reader
from castpoi.model.windows import BatchBuilder, Windows, windows_of
from castpoi.training.config import CastPoiTraining
from castpoi.training.device import free_bytes
from castpoi.training.objectives.draws import draw_places
from castpoi.training.objectives.fused_loss import (
    LossConstants,
    LossInputs,
    ReaderSample,
    fused_loss,
    scores_for_loss,
)
from castpoi.training.objectives.known_blocks import KEPT_BYTES, KnownBlocks
from castpoi.training.windows import TrainWindows, cut_windows

_GROUP: Final = 6  # windows that are padded to the same length
_LAST_VISITS: Final = 5  # from which nearby candidates are drawn
_FORECAST_WEIGHT: Final = 0.1  # of the forecast's loss; low, as all gradients are clipped together


@dataclass(frozen=True)
class FastBatch:
    """Some windows of an epoch, and the seed of what is drawn for them."""

    windows: NDArray[np.int64]
    seed: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class _Layout:
    """The windows of a batch in groups; their slots are counted through all groups."""

    groups: Sequence[Windows]
    slot: NDArray[np.int64]  # of each visit that has a target [R]
    visit: NDArray[np.int64]  # its number [R]
    begin: NDArray[np.int64]  # number of the first visit of its window [R]


class FastObjective:
    """All positions of a window at once, full vocabulary, the reader for few candidates."""

    def __init__(
        self, city: City, *, model: ModelConfig, config: CastPoiTraining, seed: int
    ) -> None:
        self.model = model
        self.config = config
        self.seed = seed
        self.others = max(1, city.places.height - 1)  # places besides the target
        self.constants = LossConstants(
            margin_weight=config.margin_weight,
            hard_negatives=min(LossConstants.hard_negatives, self.others),
        )
        histories = city.train
        if model.known_time:  # the next visit of a user's last one is not in train, and no target
            last = histories.bounds[1:] - 1
            histories = replace(histories, next_at_us=histories.at_us[last])
        builder = BatchBuilder(config=model, lat=city.lat, lon=city.lon)
        self.features = builder.features(histories)
        self.place = histories.place
        self.user_begin = histories.starts  # [N]
        self.known = KnownBlocks(
            histories, builder.points, kept_bytes=min(KEPT_BYTES, free_bytes() // 4)
        )
        targets = config.window_targets
        windows = cut_windows(histories, first=targets, stride=targets)
        windows = windows.looking_back(model.window)
        self.windows = windows.chosen(np.argsort(windows.learn))  # user by user

    def learn_since(self, at_us: int) -> None:
        """Learn only from the targets after an instant."""
        next_us = np.r_[self.features["at_us"][1:], at_us]  # [N]
        self.windows = self.windows.without(next_us <= at_us).looking_back(self.model.window)

    def batches(self, epoch: int) -> Sequence[FastBatch]:
        """All windows once, in an order fixed by seed and epoch."""
        order = np.random.default_rng((self.seed, epoch)).permutation(len(self.windows))
        size = self.config.windows_per_step
        return [
            FastBatch(order[start : start + size], (self.seed, epoch, start))
            for start in range(0, len(order), size)
        ]

    def targets(self, batch: FastBatch) -> int:
        """Number of targets in a batch."""
        return int(self.windows.targets[batch.windows].sum())

    def share(self, batch: FastBatch, rank: int, ranks: int) -> FastBatch:
        """A part of the windows of a batch; all parts have about as many visits."""
        by_length = np.argsort(-self.windows.lengths[batch.windows], kind="stable")
        return FastBatch(batch.windows[by_length[rank::ranks]], (*batch.seed, rank))

    def loss(self, model: nn.Module, batch: FastBatch) -> Tensor:
        """Mean loss over the targets of a batch."""
        assert isinstance(model, CastPoi)
        device = model.popularity.device
        layout = self._layout(self.windows.chosen(batch.windows))
        table = model.table()
        states = torch.cat(  # [S, D]
            [model.states(group.to(device), table).flatten(0, 1) for group in layout.groups]
        )
        state = states[torch.from_numpy(layout.slot).to(device)]  # [R, D]
        vectors, popularity = table.vectors[1:], table.popularity[1:]
        pairs = self.known.of(layout.visit)
        anchors = np.stack([self.place[layout.visit], pairs.home], axis=1)  # [R, 2]
        inputs = ScoreInputs(
            state=state,
            known=pairs.tensors().to(device),
            anchors=torch.from_numpy(anchors).to(device),
            table=table,
        )
        spreads = list(model.spreads(inputs))
        following = self.place[layout.visit + 1]
        is_new = torch.from_numpy(is_new_place(following, pairs)).to(device)
        loss_inputs = LossInputs(
            target=torch.from_numpy(following).to(device),
            weight=torch.where(is_new, self.config.explore_weight, 1.0) / len(following),
            constants=self.constants,
        )
        if model.reader is None:
            return fused_loss(state, vectors, popularity, spreads, None, loss_inputs)
        scores = scores_for_loss(state, vectors, popularity, spreads)
        loss_inputs = replace(loss_inputs, scores=scores)
        rng = np.random.default_rng(np.random.SeedSequence(batch.seed))
        sample, refinement, wrong = self._read_sample(
            model, inputs, states, layout, loss_inputs, rng
        )
        loss_inputs = replace(loss_inputs, sample=sample)
        loss = fused_loss(state, vectors, popularity, spreads, refinement, loss_inputs)
        # the forecast has a loss of its own, whose value is not reported
        return loss + _FORECAST_WEIGHT * (wrong - wrong.detach())

    def _read_sample(
        self,
        model: CastPoi,
        inputs: ScoreInputs,
        states: Tensor,
        layout: _Layout,
        loss_inputs: LossInputs,
        rng: np.random.Generator,
    ) -> tuple[ReaderSample, Tensor, Tensor]:
        """The sample that the reader reads, its term less the forecast [R, C], the forecast's loss.

        Adds the forecast to the scores of the loss.
        """
        assert model.reader is not None
        scores = loss_inputs.scores
        assert scores is not None  # [R, P]
        forecast = None
        if model.forecast is not None:
            detached = replace(inputs, state=inputs.state.detach())
            forecast = partial(model.forecast, detached, inputs.is_known())
            with torch.no_grad():
                scores.add_(forecast())
        visit = layout.visit
        last = np.maximum(visit[:, None] - np.arange(_LAST_VISITS), self.user_begin[visit][:, None])
        last_places = torch.from_numpy(self.place[last]).to(scores.device)  # [R, a few]
        nearest = model.reader.distances.nearest(last_places)  # [R, P]
        sample = self._sample(scores, loss_inputs.target, nearest, rng)
        term = self._read(model.reader, inputs, states, layout, sample.candidates)  # [R, C]
        predicted = torch.zeros_like(term) if forecast is None else forecast(sample.candidates)
        wrong = (term.detach() - predicted).var(dim=1, correction=0).mean()
        return sample, term - predicted.detach(), wrong

    def _layout(self, windows: TrainWindows) -> _Layout:
        """Left-padded windows, and which of their slots have a target."""
        groups, slots, visits, begins, before = [], [], [], [], 0
        for group in _groups(windows):
            visit, is_real = pad_left(group.begin, group.end)  # [B, T] each
            learns = is_real & (visit >= group.learn[:, None])  # [B, T]
            groups.append(windows_of(self.features, visit, is_real))
            slots.append(before + np.flatnonzero(learns))
            visits.append(visit[learns])
            begins.append(np.repeat(group.begin, group.targets))
            before += visit.size
        slot, visit, begin = (np.concatenate(each) for each in (slots, visits, begins))
        return _Layout(groups=groups, slot=slot, visit=visit, begin=begin)

    def _read(
        self,
        reader: Reader,
        inputs: ScoreInputs,
        states: Tensor,
        layout: _Layout,
        places: Tensor,
    ) -> Tensor:
        """The reader's term of places of every target. [S, D], [R, C] -> [R, C]

        Every target has the last `window` visits before it.
        """
        back = np.arange(1 - self.model.window, 1)  # [L]
        is_read = layout.visit[:, None] + back >= layout.begin[:, None]  # [R, L]
        back = np.where(is_read, back, 0)
        slot, visit = layout.slot[:, None] + back, layout.visit[:, None] + back  # [R, L]
        at_us = self.features["at_us"]
        age_us = np.maximum(at_us[layout.visit][:, None] - at_us[visit], 0)
        slots, place, age, real = (
            torch.from_numpy(each).to(states.device)
            for each in (slot, self.place[visit], age_us, is_read)
        )
        term, _ = reader.read(
            inputs.table.of(places),
            reader.layers.memories_of_prefixes(states.unsqueeze(0), slots),
            reader.bias(age, real, reader.distances(place, places)),
        )
        return term

    def _sample(
        self, scores: Tensor, target: Tensor, nearest: Tensor, rng: np.random.Generator
    ) -> ReaderSample:
        """The candidates of each target that the reader reads. [R, P], [R], [R, P]"""
        target = target.unsqueeze(1)  # [R, 1]
        others = scores.scatter(1, target, -torch.inf)
        hardest = others.topk(min(self.config.hard_candidates, self.others), dim=1)
        rest = others.scatter_(1, hardest.indices, -torch.inf)
        probability = rest.sub_(hardest.values[:, :1]).exp_()  # [R, P], unnormalised
        drawn, weight = draw_places(probability, nearest, self.config.drawn_candidates, rng)
        candidates = torch.cat([target, hardest.indices, drawn], dim=1)  # [R, C]
        return ReaderSample(candidates=candidates, weight=weight)


def _groups(windows: TrainWindows) -> list[TrainWindows]:
    """The windows in groups of similar length, which need little padding."""
    count = -(-len(windows) // _GROUP)
    if count == 1:
        return [windows]
    order = np.argsort(windows.lengths, kind="stable")
    return [windows.chosen(group) for group in np.array_split(order, count)]


def is_new_place(target: NDArray[np.int64], pairs: KnownPairs) -> NDArray[np.bool_]:
    """Whether the history of each target does not contain it. [R]"""
    owner = pairs.owner
    is_new = np.ones(len(target), dtype=np.bool_)
    is_new[owner[pairs.place == target[owner]]] = False
    return is_new
