"""Checks of models that are trained at all positions of a window at once.

Shapes: B histories, T slots, D width.
"""

import torch
from torch import Tensor

from castpoi.baselines.sequence import SequenceModel

WINDOWS = torch.tensor(
    [
        [3, 7, 3, 9, 1, 12],
        [5, 5, 5, 2, 0, 0],
        [4, 0, 0, 0, 0, 0],
    ]
)
LENGTHS = torch.tensor([6, 4, 1])
SECONDS = torch.tensor([5, 900, 4_000, 90_000, 90_000, 3_000_000])


def windows_for(model: SequenceModel) -> Tensor:
    """The windows as the model reads them: with the seconds of their visits if it reads times."""
    if not model.reads_times:
        return WINDOWS
    return torch.stack([WINDOWS, SECONDS.expand_as(WINDOWS)], dim=-1)  # [B, T, 2]


def check_every_prefix(model: SequenceModel) -> None:
    """Check that value and gradient of the state at a position are those of its prefix."""
    model.eval()
    torch.testing.assert_close(_states(model), _states_one_by_one(model), rtol=0, atol=1e-6)
    at_once, one_by_one = (
        torch.autograd.grad((states(model) ** 2).sum(), list(model.parameters()), allow_unused=True)
        for states in (_states, _states_one_by_one)
    )
    for ours, expected in zip(at_once, one_by_one, strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-4)


def check_padding_is_not_read(model: SequenceModel) -> None:
    """Check that the vector of padding changes no state."""
    windows = windows_for(model)
    before = model.eval().state(windows, LENGTHS)
    with torch.no_grad():
        model.place.weight[0] += 1.0
    torch.testing.assert_close(model.state(windows, LENGTHS), before, rtol=0, atol=0)


def _states(model: SequenceModel) -> Tensor:
    states = model.states(windows_for(model), LENGTHS)  # [B, T, D]
    return torch.cat([each[:length] for each, length in zip(states, LENGTHS, strict=True)])


def _states_one_by_one(model: SequenceModel) -> Tensor:
    states = [
        model.state(window[None, :visits], torch.tensor([visits]))
        for window, length in zip(windows_for(model), LENGTHS.tolist(), strict=True)
        for visits in range(1, length + 1)
    ]
    return torch.cat(states)
