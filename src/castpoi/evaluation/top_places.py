"""Top places: what a ranker would show a person, and how sure its softmax is of it.

Equal scores are listed by place number, lowest first. The softmax runs over all places of the city
and is taken of whatever the scores are: for a method trained with a softmax these are its
probabilities, for a counting method (whose scores are visits, kilometres or shares) they are not.

Shapes: B histories, P places, K best places.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from castpoi.core.arrays import k_best

TOP: Final = 10
"""Places listed for every target; all of them in a city that has fewer."""


@dataclass(frozen=True, kw_only=True)
class TopPlaces:
    """The places ranked best after some histories."""

    place: NDArray[np.int64]
    """Best first. [B, K]"""
    softmax: NDArray[np.float64]
    """Softmax of their scores. [B, K]"""
    target_softmax: NDArray[np.float64]
    """Softmax of the score of the place visited next. [B]"""

    @classmethod
    def end_to_end(cls, blocks: Sequence["TopPlaces"]) -> "TopPlaces":
        """Several blocks of histories as one."""
        return cls(
            place=np.concatenate([block.place for block in blocks]),
            softmax=np.concatenate([block.softmax for block in blocks]),
            target_softmax=np.concatenate([block.target_softmax for block in blocks]),
        )


def top_places(
    scores: NDArray[np.float32], targets: NDArray[np.int64], *, most: int = TOP
) -> TopPlaces:
    """The `most` best places of each history, and their softmax. [B, P], [B] -> [B, K]"""
    best = np.empty((len(scores), min(most, scores.shape[1])), dtype=np.int64)  # [B, K]
    for row, own in enumerate(scores):
        best[row] = k_best(own, most)
    highest = scores.max(axis=1, keepdims=True)  # [B, 1]
    total = np.exp(scores - highest).sum(axis=1, keepdims=True, dtype=np.float64)  # [B, 1]
    wanted = np.concatenate([best, targets[:, None]], axis=1)  # [B, K + 1]
    # In float64: the softmax of a target that was thought impossible would vanish in float32.
    above = np.take_along_axis(scores, wanted, axis=1) - highest.astype(np.float64)
    softmax = np.exp(above) / total  # [B, K + 1]
    return TopPlaces(place=best, softmax=softmax[:, :-1], target_softmax=softmax[:, -1])
