"""Overlap with training: could a target be memorised from the trajectories of train?

The overlap of a target is the length of the longest sequence of visits that ends with it and also
occurs in a train trajectory of any user: 1 if only its place does, 2 if somebody has made the same
move to it, and so on (overlap from the end, Luca et al. 2023).
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins import record
from castpoi.checkins.trajectory import Trajectories

MAX_LENGTH: Final = 4
"""Longest sequence that is compared, in visits."""


def overlap_with_train(trajectories: Trajectories, targets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Visits of the longest sequence that ends with each target and occurs in train."""
    place = trajectories.place
    is_train = trajectories.part == record.PARTS.index(record.TRAIN)
    position = np.arange(len(place)) - trajectories.starts  # visits of the user before each
    sequence, in_train = place, is_train  # the number of the sequence that ends at each visit
    overlap = np.zeros(len(targets), dtype=np.int64)
    for length in range(1, MAX_LENGTH + 1):
        if length > 1:
            before = np.r_[0, sequence[:-1]]
            pairs = before * (int(place.max()) + 1) + place
            sequence = np.unique(pairs, return_inverse=True)[1]
            in_train = np.r_[False, in_train[:-1]] & is_train & (position >= length - 1)
        is_known = np.isin(sequence[targets], sequence[in_train])
        overlap[is_known & (position[targets] >= length - 1)] = length
    return overlap
