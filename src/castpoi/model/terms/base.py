"""The base score, and the interface of the other cheap terms.

    s(u, c) = h_u . e_c    base         the state after the last visit times the place
            + beta_c       popularity   one number for each place
            + gamma r      reader       attention of the candidate to the visits; expensive
            + rho_u(c)     revisit      features of past visits to the candidate
            + delta_u(c)   distance     distance from the user's anchors (ours)

A *cheap term* computes few learned numbers for each history, its *compact* values, and adds them to
the scores of all places by an *index* that has no gradient: one value for each known place
(revisit), one for each cell of distances (distance). The gradient takes the same way back. The
model, the exact scorer, the losses and the explanations use only the methods of this class.

Shapes: B histories (or any positions), T slots, P places, C candidates, D width, E (history, known
place) pairs, A anchors.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from castpoi.model.config import ModelConfig
from castpoi.model.distances import DistanceBuckets
from castpoi.model.features.known import KnownPlaces
from castpoi.model.places import PlaceTable


@dataclass(frozen=True, kw_only=True)
class ScoreInputs:
    """The inputs of the cheap terms, computed once for each history."""

    state: Tensor  # after the last visit; zero if the history is empty [B, D]
    known: KnownPlaces
    anchors: Tensor  # places from which distances are measured, or NO_PLACE [B, A]
    table: PlaceTable

    def is_known(self) -> Tensor:
        """1 for each known place of each history, else 0. [B, P]"""
        is_known = self.table.popularity.new_zeros(len(self.state), len(self.table))
        is_known[self.known.owner, self.known.place] = 1.0
        return is_known


@dataclass(frozen=True, kw_only=True)
class Encoded(ScoreInputs):
    """Encoded histories: the inputs of all terms."""

    visits: Tensor  # states that the reader reads; zero in empty slots [B, T, D]
    place: Tensor  # of each visit, or NO_PLACE [B, T]
    age_us: Tensor  # microseconds from the visit to the last one [B, T]
    is_real: Tensor  # whether the slot has a visit [B, T]

    def __len__(self) -> int:
        return len(self.state)


class Term(nn.Module):
    """A cheap term of the score."""

    meaning: ClassVar[str]
    """The term in words, for explanations."""

    def __init__(self, *, config: ModelConfig, distances: DistanceBuckets | None = None) -> None:
        super().__init__()

    def compact(self, inputs: ScoreInputs) -> Tensor:
        """The learned values: [E] or [B, any]."""
        raise NotImplementedError

    def index(self, inputs: ScoreInputs) -> Tensor:
        """The position of each value among the scores, or the value of each score."""
        raise NotImplementedError

    def add_to_(self, scores: Tensor, compact: Tensor, index: Tensor) -> None:
        """Add the term to the scores of all places, in place. [B, P]"""
        raise NotImplementedError

    def reduce(self, grad: Tensor, compact: Tensor, index: Tensor) -> Tensor:
        """The gradient of the compact values from that of all scores: `add_to_` transposed."""
        raise NotImplementedError

    def split(
        self, compact: Tensor, index: Tensor, size: int, scores: torch.Size
    ) -> Iterable[tuple[Tensor, Tensor]]:
        """The values and the index of every `size` rows of a matrix of scores."""
        return zip(compact.split(size), index.split(size), strict=True)

    def at(self, inputs: ScoreInputs, candidates: Tensor) -> Tensor:
        """The term of candidates, shared or each history's own. [C] or [B, C] -> [B, C]"""
        term = inputs.state.new_zeros(len(inputs.state), len(inputs.table))  # [B, P]
        self.add_to_(term, self.compact(inputs), self.index(inputs))
        return term.gather(1, candidates.expand(len(term), -1))


@dataclass(frozen=True)
class Spread:
    """A cheap term of some histories: its values, and the index by which they are added."""

    term: Term
    compact: Tensor
    index: Tensor

    def split(self, size: int, scores: torch.Size) -> list["Spread"]:
        """The same term of every `size` rows of a matrix of scores."""
        parts = self.term.split(self.compact, self.index, size, scores)
        return [Spread(self.term, *part) for part in parts]


def cheap_scores(
    state: Tensor, vectors: Tensor, popularity: Tensor, spreads: Iterable[Spread]
) -> Tensor:
    """The score of every place without the reader. [B, D], [P, D], [P] -> [B, P]"""
    scores = torch.addmm(popularity, state, vectors.mT)  # [B, P]
    for each in spreads:
        each.term.add_to_(scores, each.compact.to(scores.dtype), each.index)
    return scores
