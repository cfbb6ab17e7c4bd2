"""How well histories know places, as features of the revisit gate.

Shapes: E (history, place) pairs, F features.
"""

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from castpoi.checkins.trajectory import Histories
from castpoi.model.config import RevisitFeatures
from castpoi.model.habits import habits_of
from castpoi.model.known_pairs import KnownPairs, known_pairs
from castpoi.model.revisit_features import paper_features, rich_features


@dataclass(frozen=True, kw_only=True)
class Revisits:
    """How often and how recently each history went to the places it knows; all others are zero."""

    owner: Tensor
    """Which history the pair belongs to. [E]"""
    row: Tensor
    """Row of the place. [E]"""
    features: Tensor
    """What is known of the pair, see `revisit_features.py`. [E, F]"""

    def to(self, device: torch.device) -> "Revisits":
        """The same on another device."""
        return Revisits(**{each.name: getattr(self, each.name).to(device) for each in fields(self)})


def revisits_of(histories: Histories, window: int, features: RevisitFeatures = "paper") -> Revisits:
    """What the last `window` visits of every history tell of the places among them."""
    recent = histories.tail(window)
    return revisits_of_pairs(recent, known_pairs(recent, window), window, features)


def revisits_of_pairs(
    recent: Histories, pairs: KnownPairs, window: int, features: RevisitFeatures
) -> Revisits:
    """The same, where the visits are counted already."""
    if features == "paper":
        told = paper_features(pairs.count, pairs.slot, window)
    else:
        told = rich_features(pairs.count, pairs.slot, window, habits_of(recent, pairs, window))
    return Revisits(
        owner=torch.from_numpy(pairs.owner),
        row=torch.from_numpy(pairs.place + 1),
        features=torch.from_numpy(told),
    )
