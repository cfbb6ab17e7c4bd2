"""The fast objective: the paper's loss for all positions of a window at once.

All terms but the reader's learn from every target against the full vocabulary; the reader learns
from a few candidates of each (see fused_loss.py). What is learned is the same model, scored by the
same exact scorer.

Shapes: B windows, T slots, R targets of a batch, C candidates, L visits read, D width, V places.
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
from castpoi.model.batch import BatchBuilder, Windows, windows_of
from castpoi.model.castpoi import CastPoi
from castpoi.model.config import REVISIT_WINDOW, ModelConfig
from castpoi.model.revisits import Revisits
from castpoi.model.shared_vectors import PlaceTable
from castpoi.training.device import free_bytes
from castpoi.training.draws import draw_places
from castpoi.training.fused_loss import (
    Lesson,
    LossConstants,
    Reading,
    fused_loss,
    quick_scores,
)
from castpoi.training.known_places import KEPT_BYTES, Known, KnownPlaces
from castpoi.training.windows import TrainWindows, cut_windows

_LAST_VISITS: Final = 5  # from which nearby candidates are drawn
_FORECASTING: Final = (
    0.1  # weight of what the forecast learns; little, as all gradients share a clip
)


@dataclass(frozen=True, kw_only=True)
class FastConfig:
    """How the fast objective spends its time."""

    windows_per_step: int = 2
    """Windows in a batch; each has up to `window` targets."""
    hard_candidates: int = 16
    """Hardest places by the other terms among a target's candidates."""
    drawn_candidates: int = 20
    """Candidates drawn from all other places; they stand for all of these."""
    explore_weight: float
    """Weight of a target that its history does not know."""


@dataclass(frozen=True)
class FastBatch:
    """Some windows of an epoch, and the seed of what is drawn for them."""

    windows: NDArray[np.int64]
    seed: tuple[int, ...]


class FastObjective:
    """All positions of a window at once, full vocabulary, reader on few candidates."""

    def __init__(
        self,
        city: City,
        *,
        model: ModelConfig,
        config: FastConfig,
        constants: LossConstants,
        seed: int,
    ) -> None:
        self.model = model
        self.config = config
        self.constants = constants
        self.seed = seed
        self.places = city.places.height
        histories = city.train
        lat, lon = city.lat, city.lon
        builder = BatchBuilder(config=model, lat=lat, lon=lon)
        self.facts = builder.facts(histories)
        self.place = histories.place
        self.known = KnownPlaces(
            histories,
            REVISIT_WINDOW,
            builder.points,
            known_time=model.known_time,
            kept_bytes=min(KEPT_BYTES, free_bytes() // 4),
        )
        self.user_begin = self.known.user_begin  # [N]
        windows = cut_windows(histories, first=model.window, stride=model.window)
        windows = windows.looking_back(model.window)
        self.windows = windows.chosen(np.argsort(windows.learn))  # user by user

    def batches(self, epoch: int) -> Sequence[FastBatch]:
        """All windows once, in an order that seed and epoch fix."""
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
        """The windows of a batch that one of several processes learns from."""
        return FastBatch(batch.windows[rank::ranks], (*batch.seed, rank))

    def loss(self, model: nn.Module, batch: FastBatch) -> Tensor:
        """Mean loss over the targets of a batch."""
        assert isinstance(model, CastPoi)
        device = model.popularity.device
        layout = self._layout(self.windows.chosen(batch.windows)).to(device)
        table = model.table()
        states = model.states(layout.windows, table)  # [B, T, D]
        seed = np.random.SeedSequence(batch.seed)
        state = states[layout.learns]  # [R, D]
        targets = _Targets(states=states, state=state, layout=layout, seed=seed)
        place, popularity = table.vectors[1:], table.popularity[1:]
        pairs = self.known.of(layout.visit)
        known, revisits = self._revisits(pairs, device)
        gain = (
            None
            if model.revisit_gate is None
            else model.revisit_gate(state, revisits, table.vectors)
        )
        following = self.place[layout.visit + 1]
        target = torch.from_numpy(following).to(device)
        is_new = torch.from_numpy(_is_new(following, pairs)).to(device)
        rows = np.stack([self.place[layout.visit], pairs.home], axis=1) + 1
        anchors = torch.from_numpy(rows).to(device)  # [R, 2]
        cell, by_cell = _by_distance(model, state, anchors)
        lesson = Lesson(
            scores=quick_scores(state, place, popularity, known, gain, cell, by_cell),
            target=target,
            weight=torch.where(is_new, self.config.explore_weight, 1.0) / len(target),
            known=known,
            cell=cell,
            constants=self.constants,
        )
        if model.refinement is None:
            return fused_loss(state, place, popularity, gain, None, lesson, by_cell)
        lesson, refinement, forecasting = self._read_some(model, table, targets, anchors, lesson)
        loss = fused_loss(state, place, popularity, gain, refinement, lesson, by_cell)
        # the forecast learns on the side: the loss that is told is the model's
        return loss + _FORECASTING * (forecasting - forecasting.detach())

    def _read_some(
        self,
        model: CastPoi,
        table: PlaceTable,
        targets: "_Targets",
        anchors: Tensor,
        lesson: Lesson,
    ) -> tuple[Lesson, Tensor, Tensor]:
        """Read a few candidates of every target, in place of the forecast that stands for all.

        The lesson with the forecast in its scores; what the reader says beyond its forecast [R, C];
        and how wrong the forecast was.
        """
        scores = lesson.scores  # [R, V]
        is_known = torch.zeros_like(scores)
        is_known.view(-1)[lesson.known] = 1.0
        guess = partial(model.foretell, table, targets.state.detach(), anchors, is_known)
        with torch.no_grad():
            scores.add_(guess())
        nearest = model.distances.nearest(self._last_rows(targets.layout.visit).to(scores.device))
        rng = np.random.default_rng(targets.seed)
        reading = self._choose(scores, lesson.target, nearest, rng)
        said = self._read(model, table, targets, reading.candidates)  # [R, C]
        foretold = guess(reading.candidates)
        wrong = (said.detach() - foretold).var(dim=1, correction=0).mean()
        return replace(lesson, reading=reading), said - foretold.detach(), wrong

    def _layout(self, windows: TrainWindows) -> "_Layout":
        """Left-padded windows, and which of their slots learn."""
        visits, is_real = pad_left(windows.begin, windows.end)  # [B, T] each
        slots = visits.shape[1]
        learns = is_real & (visits >= windows.learn[:, None])  # [B, T]
        window, slot = np.nonzero(learns)  # [R], [R]
        back = slot[:, None] + np.arange(1 - self.model.window, 1)  # [R, L]
        read = window[:, None] * slots + np.maximum(back, 0)
        visit, visit_read = visits[learns], visits.reshape(-1)[read]
        at_us = self.facts.at_us
        return _Layout(
            windows=windows_of(self.facts, visits, is_real),
            learns=torch.from_numpy(learns),
            visit=visit,
            read=torch.from_numpy(read),
            is_read=torch.from_numpy((back >= 0) & is_real.reshape(-1)[read]),
            read_row=torch.from_numpy(self.place[visit_read] + 1),
            read_age_us=torch.from_numpy(np.maximum(at_us[visit][:, None] - at_us[visit_read], 0)),
        )

    def _revisits(self, known: Known, device: torch.device) -> tuple[Tensor, Revisits]:
        """Known pairs as row * V + place [E], and what the revisit gate reads of them."""
        owner = known.owner
        revisits = Revisits(
            owner=torch.from_numpy(owner),
            row=torch.from_numpy(known.place + 1),
            features=torch.from_numpy(known.features),
        )
        return torch.from_numpy(owner * self.places + known.place).to(device), revisits.to(device)

    def _last_rows(self, visit: NDArray[np.int64]) -> Tensor:
        """Rows of the last places visited up to each visit. [R] -> [R, a few]"""
        last = np.maximum(visit[:, None] - np.arange(_LAST_VISITS), self.user_begin[visit][:, None])
        return torch.from_numpy(self.place[last] + 1)

    def _choose(
        self, scores: Tensor, target: Tensor, nearest: Tensor, rng: np.random.Generator
    ) -> Reading:
        """Which candidates the reader reads for each target. [R, V], [R], [R, V]"""
        asked = target.unsqueeze(1)  # [R, 1]
        others = scores.scatter(1, asked, -torch.inf)
        hardest = others.topk(self.config.hard_candidates, dim=1)
        rest = others.scatter_(1, hardest.indices, -torch.inf)
        chance = rest.sub_(hardest.values[:, :1]).exp_()  # [R, V]
        drawn, weight = draw_places(chance, nearest, self.config.drawn_candidates, rng)
        candidates = torch.cat([asked, hardest.indices, drawn], dim=1)  # [R, C]
        return Reading(candidates=candidates, weight=weight)

    def _read(
        self, model: CastPoi, table: PlaceTable, targets: "_Targets", places: Tensor
    ) -> Tensor:
        """What the reader says of places of every target. [R, C] -> [R, C]

        Every target is read from the visits before it, the last `window` of them.
        """
        assert model.refinement is not None
        rows, layout = places + 1, targets.layout
        buckets = model.distances(layout.read_row, rows)  # [R, C, L]
        term, _ = model.refinement.read(
            table.of(rows),
            model.refinement.reader.remember_prefixes(targets.states, layout.read),
            model.refinement.bias(layout.read_age_us, layout.is_read, buckets),
        )
        return term


@dataclass(frozen=True, kw_only=True)
class _Layout:
    """The windows of a batch."""

    windows: Windows
    learns: Tensor
    """Whether the visit in a slot has a target. [B, T]"""
    visit: NDArray[np.int64]
    """Number of each visit that has a target. [R]"""
    read: Tensor
    """Slots that are read for a target, its own last, counted through all windows. [R, L]"""
    is_read: Tensor
    """Whether there is such a slot, and a visit in it. [R, L]"""
    read_row: Tensor
    """Row of the place visited in it. [R, L]"""
    read_age_us: Tensor
    """Microseconds from that visit to the last one. [R, L]"""

    def to(self, device: torch.device) -> "_Layout":
        """The same on another device."""
        return replace(
            self,
            windows=self.windows.to(device),
            learns=self.learns.to(device),
            read=self.read.to(device),
            is_read=self.is_read.to(device),
            read_row=self.read_row.to(device),
            read_age_us=self.read_age_us.to(device),
        )


@dataclass(frozen=True, kw_only=True)
class _Targets:
    """The targets of a batch."""

    states: Tensor
    """The state after every visit of the batch's windows. [B, T, D]"""
    state: Tensor
    """The state before each target. [R, D]"""
    layout: _Layout
    """Of these targets."""
    seed: np.random.SeedSequence
    """Of what is drawn for them."""


def _by_distance(
    model: CastPoi, state: Tensor, anchors: Tensor
) -> tuple[Tensor | None, Tensor | None]:
    """Cells of the distance gate of every place, and what each gains. -> [R, V], [R, M]"""
    if model.distance_gate is None:
        return None, None
    return model.distance_gate.cells(anchors), model.distance_gate.by_cell(state, anchors)


def _is_new(target: NDArray[np.int64], known: Known) -> NDArray[np.bool_]:
    """Whether each history does not know its target. [R]"""
    owner = known.owner
    is_new = np.ones(len(target), dtype=np.bool_)
    is_new[owner[known.place == target[owner]]] = False
    return is_new
