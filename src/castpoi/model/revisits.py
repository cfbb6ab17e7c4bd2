"""How well histories know places, as features of the revisit gate.

Shapes: E (history, place) pairs, F features.
"""

from dataclasses import dataclass, fields

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from castpoi.checkins.trajectory import Histories
from castpoi.model.habits import Visits
from castpoi.model.known_pairs import KnownPairs
from castpoi.model.revisit_features import Pairs, revisit_features


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


def revisits_of(
    recent: Histories,
    pairs: KnownPairs,
    window: int,
    points: NDArray[np.float64] | None = None,
    *,
    known_time: bool = False,
) -> Revisits:
    """What the last `window` visits of every history tell of the places among them.

    With habits, where `points` are given: all places on the unit sphere. [P, 3] If the time is
    known, habits are asked for the moment of the visit to come.
    """
    last = recent.bounds[1:][pairs.owner] - 1  # visit with which the pair's history ends [E]
    known = Pairs(position=last, place=pairs.place, count=pairs.count, slot=pairs.slot)
    visits = None if points is None else Visits.of(recent, points, known_time=known_time)
    return Revisits(
        owner=torch.from_numpy(pairs.owner),
        row=torch.from_numpy(pairs.place + 1),
        features=torch.from_numpy(revisit_features(known, window, visits)),
    )
