"""What every sequence model is: it reads the places of the last visits and gives one state.

A place has a *row* in the model's table: its number plus one. Row 0 is padding. Windows are
right-padded: the oldest visit stands in slot 0, and after the last visit only padding follows.

    rows     3 7 3 0 0        a history of three visits in a window of five slots
    lengths  3

A model's file holds its config (see `sequence_config.py`) and its class, which fills in one of

    states   the state after every visit, if a later visit changes no earlier state; then all
             positions of a window learn at once (`all_positions`)
    state    the state after the last visit alone; then every prefix is a row of its own

and, where its scores are more than a product of state and place vectors, `candidate_vectors` and
`candidate_bias`. The trainer sees nothing else, whatever the model.

Shapes: B histories, T slots, P places, D width, N visits.
"""

from typing import ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from castpoi.baselines.sequence_config import SequenceConfig

PADDING = 0
"""Row of the place table that stands for no place."""


class SequenceModel(nn.Module):
    """A model that foretells the next place from the places before, in order."""

    config_class: ClassVar[type[SequenceConfig]]
    """What its shape is told by."""
    all_positions: ClassVar[bool] = False
    """Whether `states` gives the states of all prefixes of a window."""
    objective: ClassVar[Literal["next", "cloze"]] = "next"
    """Learns the next place, or places that were masked (see `training/cloze_objective.py`)."""

    place: nn.Embedding

    def __init__(self, *, config: SequenceConfig, places: int) -> None:
        super().__init__()
        self.config = config
        self.place = nn.Embedding(places + 1, config.width, padding_idx=PADDING)

    @property
    def place_count(self) -> int:
        """Number of places, P."""
        return self.place.num_embeddings - 1

    @property
    def device(self) -> torch.device:
        """Where its weights are."""
        return self.place.weight.device

    @torch.no_grad()
    def clear_padding(self) -> None:
        """Zero the row of padding, filled like all others, unless the loss has a class for it."""
        if not self.config.padding_class:
            self.place.weight[PADDING].zero_()

    def state(self, rows: Tensor, lengths: Tensor) -> Tensor:
        """The state after the last visit, zero where there is none. [B, T], [B] -> [B, D]"""
        states = self.states(rows, lengths)  # [B, T, D]
        return zero_where_empty(last_of(states, lengths), lengths)

    def states(self, rows: Tensor, lengths: Tensor) -> Tensor:
        """The state after every visit; those of padding mean nothing. [B, T], [B] -> [B, T, D]"""
        raise NotImplementedError(f"{type(self).__name__} has no state but the last")

    def scores(self, state: Tensor) -> Tensor:
        """The score of every row, padding included. [B, D] -> [B, P + 1]"""
        product = state @ self.candidate_vectors().mT  # [B, P + 1]
        bias = self.candidate_bias()
        return product if bias is None else product + bias

    def candidate_vectors(self) -> Tensor:
        """The vector that a state is multiplied with for each row. [P + 1, D]"""
        return self.place.weight

    def candidate_bias(self) -> Tensor | None:
        """What is added to the score of each row, if anything. [P + 1]"""
        return None

    def penalty(self) -> Tensor | None:
        """What is added to the mean loss of a step, if anything; a scalar."""
        return None


def padded_rows(
    place: NDArray[np.int64], begin: NDArray[np.int64], lengths: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Rows of so many visits from each beginning on, right-padded. [N], [B], [B] -> [B, T]

    Visits of all people lie end to end in `place`. There is one slot at least.
    """
    slots = np.arange(max(1, int(lengths.max(initial=0))))
    is_real = slots < lengths[:, None]  # [B, T]
    rows = np.full(is_real.shape, PADDING, dtype=np.int64)
    rows[is_real] = place[(begin[:, None] + slots)[is_real]] + 1
    return rows


def last_of(states: Tensor, lengths: Tensor) -> Tensor:
    """The entry of the last visit; of slot 0 where there is none. [B, T, D], [B] -> [B, D]"""
    last = (lengths - 1).clamp(min=0)
    return states[torch.arange(len(states), device=states.device), last]


def zero_where_empty(state: Tensor, lengths: Tensor) -> Tensor:
    """Zero for histories without a visit, even where arithmetic gave no number. [B, D] -> same"""
    return state.masked_fill((lengths == 0).unsqueeze(1), 0.0)


def real_slots(rows: Tensor, lengths: Tensor) -> Tensor:
    """Whether a visit stands in each slot. [B, T], [B] -> [B, T]"""
    return torch.arange(rows.shape[1], device=rows.device) < lengths.unsqueeze(1)
