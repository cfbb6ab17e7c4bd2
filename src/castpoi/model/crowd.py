"""What is counted of the crowd: how many people went to a place, and which places they share.

    likeness(j, c) = people who went to both / ( sqrt( (n_j - 1) n_c ) + 10 )

n are the people who went to each. Whoever asks has been at j, hence n_j - 1. Of every place the
likest are kept. Kept are numbers of people, never who; a number may be 1 (docs/decisions, 12).

In training everybody is one of the crowd, and must not find there what is still to be foretold:
their own first visit to c. So whoever learns is taken out of the numbers, as if never counted; and
a place counts only if it is liker than all that are left out, so that to be kept tells nothing.

Shapes: P places, K likest places, B histories, N last visits.
"""

from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from castpoi.checkins.trajectory import Histories
from castpoi.model.batch import PADDING

FADING: Final = 0.8
"""Worth of a visit beside the one after it."""

LAST_VISITS: Final = 10
"""Visits whose likest places count."""

_FEW: Final = 10.0  # people; two who share two places by chance are no likeness
_SPREAD: Final = 10.0  # brings sums of likeness to the order of 1


class Crowd(nn.Module):
    """Numbers of people, by place and by pair of places; rows as in the place table."""

    people: Tensor
    likest: Tensor
    shared: Tensor
    least: Tensor

    def __init__(self, *, places: int, likest: int) -> None:
        super().__init__()
        self.places = places
        rows = places + 1
        self.register_buffer("people", torch.zeros(rows))
        self.register_buffer("likest", torch.full((rows, likest), PADDING, dtype=torch.int32))
        self.register_buffer("shared", torch.zeros(rows, likest))
        self.register_buffer("least", torch.zeros(rows))  # likeness below which none is kept

    def count(self, histories: Histories) -> None:
        """Count the crowd anew; every history is one person's."""
        kept = self.likest.shape[1]
        went = np.unique(np.stack([histories.owner, histories.place]), axis=1)  # [2, pairs]
        by_person = _Lists(went[0], went[1], len(histories.bounds) - 1)
        by_place = _Lists(went[1], went[0], self.places)
        people = by_place.lengths.astype(np.float32)  # [P]
        self.people[1:] = torch.from_numpy(people)
        for place in range(self.places):
            shared = np.bincount(by_person.joined(by_place.of(place)), minlength=self.places)
            shared[place] = 0
            alike = likeness(shared, people[place], people)
            best = np.argsort(-alike, kind="stable")[: kept + 1]
            best = best[alike[best] > 0]
            # a full list ends where the first place that is left out stands
            self.least[place + 1] = float(alike[best[kept]]) if len(best) > kept else 0.0
            best = best[:kept]
            self.likest[place + 1, : len(best)] = torch.from_numpy(best.astype(np.int32) + 1)
            self.shared[place + 1, : len(best)] = torch.from_numpy(shared[best].astype(np.float32))

    def alike(self, last: Tensor, own: Tensor | None = None) -> Tensor:
        """How like the last places every place is, faded by visits ago; 0 to about 3.

        Rows of the last visits, the last one first [B, N]; places to take this person out of,
        [B, P + 1] or none -> [B, P]
        """
        there = self.likest[last].long()  # [B, N, K]
        shared, others = self.shared[last], self.people[there]
        if own is not None:
            mine = own.gather(1, there.flatten(1)).view(there.shape)
            shared, others = shared - mine, others - mine
        here = (self.people[last] - 1).clamp_(min=0).unsqueeze(2)  # [B, N, 1]
        alike = shared / ((here * others).sqrt_() + _FEW)
        alike *= alike > self.least[last].unsqueeze(2)
        alike *= (FADING ** torch.arange(last.shape[1], device=last.device)).unsqueeze(1)
        sums = alike.new_zeros(len(last), self.places + 1)
        sums.scatter_add_(1, there.flatten(1), alike.flatten(1))
        return sums[:, 1:].mul_(_SPREAD).log1p_()

    def breadth(self, own: Tensor | None = None) -> Tensor:
        """log(1 + people who went to every place). [B, P + 1] or none -> [B, P] or [1, P]"""
        people = self.people if own is None else self.people - own
        return people.view(-1, self.places + 1)[:, 1:].log1p()


def likeness(
    shared: NDArray[np.int64], people_here: float, people: NDArray[np.float32]
) -> NDArray[np.float32]:
    """How like one place others are. [P], its people, [P] -> [P]"""
    here = max(people_here - 1, 0)
    alike: NDArray[np.float32] = shared.astype(np.float32) / (np.sqrt(here * people) + _FEW)
    return alike


class _Lists:
    """Members of groups, looked up by group."""

    def __init__(self, group: NDArray[np.int64], member: NDArray[np.int64], groups: int) -> None:
        self.member = member[np.argsort(group, kind="stable")]
        self.lengths = np.bincount(group, minlength=groups)
        self.bounds = np.r_[0, np.cumsum(self.lengths)]

    def of(self, group: int) -> NDArray[np.int64]:
        return self.member[self.bounds[group] : self.bounds[group + 1]]

    def joined(self, groups: NDArray[np.int64]) -> NDArray[np.int64]:
        """Members of several groups, one group after the other."""
        return np.concatenate([self.member[:0], *(self.of(group) for group in groups)])
