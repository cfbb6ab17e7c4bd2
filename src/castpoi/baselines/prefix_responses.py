"""The strongest response of every filter to every prefix of a window.

A filter of height h has a tap for each of h visits in a row. It starts in any slot i with enough
room, i <= L - h. Its response to the prefix that ends in slot t, after which slots are empty, is

    sum of tap_k . visit_{i + k}   over the k < h with i + k <= t; 0 if i > t

Prefixes share these sums: with the next visit a response has one tap more, until it is *complete*
and constant. So tap k is added to the responses of all filters, slots and windows in one product;
they are then the responses to the prefixes that end in slot i + k. For each prefix the strongest
response is kept with its number of taps: the gradient of tap k comes from all that had tap k.

Shapes: B windows, T slots with visits, L slots and heights, H filters of a height, D width.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

_STRIPS: Final = 2
"""Parts in which a tap is added. Late slots have no room for tall filters: more parts waste less on
them, fewer make larger products; 2 to 4 are equally fast."""
LONGEST_WINDOW: Final = 254
"""Taps are counted in bytes."""
_COMPLETE: Final = LONGEST_WINDOW + 1
"""Number of taps of a complete response, larger than any other."""


def prefix_responses(visits: Tensor, taps: Tensor) -> Tensor:
    """The strongest responses to the prefixes by their end. [T, B, D], [L, D, L H] -> [T, B, L H]

    Filters are ordered by height; `taps` has a matrix for each k, zero where a filter has no tap k.
    """
    apply: Callable[..., Tensor] = _PrefixResponses.apply
    with torch.autocast(taps.device.type, enabled=False):  # bfloat16 sums are too inexact
        return apply(visits.to(taps.dtype), taps)


class _PrefixResponses(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, visits: Tensor, taps: Tensor) -> Tensor:
        begun, best = _before_any_tap(visits, taps)  # by first slot, by end of prefix. [T, B, L H]
        had = torch.zeros_like(best, dtype=torch.uint8)
        complete = torch.full_like(best, -torch.inf)
        for tap, first, here, filters in _strips(visits, taps):
            sums = begun[first, :, filters]
            sums.flatten(0, 1).addmm_(visits[here].flatten(0, 1), taps[tap, :, filters])
            complete_now, unfinished = _last_tap_here(tap, filters, taps)
            complete[here, :, complete_now] = begun[first, :, complete_now]
            _keep_stronger(
                (best[here, :, unfinished], had[here, :, unfinished]),
                begun[first, :, unfinished],
                taps_had=tap + 1,
            )
        is_new = _carry_forward(complete)
        _keep_stronger((best, had), complete, taps_had=_COMPLETE)
        context.save_for_backward(visits, taps, had, is_new)
        return best

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        visits, taps, had, is_new = context.saved_tensors
        of_complete = _carried_back(grad * (had == _COMPLETE), is_new)
        of_visits, of_taps = torch.zeros_like(visits), torch.zeros_like(taps)
        of_begun = torch.zeros_like(grad)
        for tap, first, here, filters in reversed(list(_strips(visits, taps))):
            complete_now, unfinished = _last_tap_here(tap, filters, taps)
            of_begun[first, :, complete_now] += of_complete[here, :, complete_now]
            is_best = had[here, :, unfinished] == tap + 1
            of_begun[first, :, unfinished] += grad[here, :, unfinished] * is_best
            of_sums = of_begun[first, :, filters].flatten(0, 1)
            of_visits[here].flatten(0, 1).addmm_(of_sums, taps[tap, :, filters].mT)
            of_taps[tap, :, filters].addmm_(visits[here].flatten(0, 1).mT, of_sums)
        return of_visits, of_taps


def _before_any_tap(visits: Tensor, taps: Tensor) -> tuple[Tensor, Tensor]:
    """Responses by first slot, and the best of those that start after a prefix. -> 2 x [T, B, L H]

    These are 0, or minus infinity where the filter does not fit.
    """
    slots, windows, columns = *visits.shape[:2], taps.shape[2]
    height = torch.arange(columns, device=taps.device) // (columns // len(taps)) + 1
    slot = torch.arange(slots, device=taps.device)[:, None, None]
    nothing = visits.new_zeros(slots, windows, columns)
    begun = nothing.masked_fill(slot + height > len(taps), -torch.inf)
    return begun, nothing.masked_fill(slot + height >= len(taps), -torch.inf)


def _strips(visits: Tensor, taps: Tensor) -> Iterator[tuple[int, slice, slice, slice]]:
    """A tap, first slots of filters, slots of the tap, and filters that fit there."""
    slots, tallest = len(visits), len(taps)
    of_a_height = taps.shape[2] // tallest
    for tap in range(slots):
        size = -(-(slots - tap) // _STRIPS)
        for begin in range(0, slots - tap, size):
            end = min(begin + size, slots - tap)
            filters = slice(tap * of_a_height, (tallest - begin) * of_a_height)
            yield tap, slice(begin, end), slice(begin + tap, end + tap), filters


def _last_tap_here(tap: int, filters: slice, taps: Tensor) -> tuple[slice, slice]:
    """The filters for which this tap is the last one, and the filters with more taps."""
    end = (tap + 1) * taps.shape[2] // len(taps)
    return slice(filters.start, end), slice(end, filters.stop)


def _keep_stronger(kept: tuple[Tensor, Tensor], other: Tensor, *, taps_had: int) -> None:
    """Replace the best responses, and their numbers of taps, by stronger ones in place."""
    best, had = kept
    # no masked_fill_, which is ten times slower; later responses have more taps
    is_stronger = (other > best).view(torch.uint8)
    torch.maximum(had, is_stronger.mul_(taps_had), out=had)
    torch.maximum(best, other, out=best)


def _carry_forward(complete: Tensor) -> Tensor:
    """Keep complete responses for later prefixes unless one is stronger; whether each is new."""
    is_new = torch.ones_like(complete, dtype=torch.bool)  # [T, B, L H]
    for end in range(1, len(complete)):
        torch.gt(complete[end], complete[end - 1], out=is_new[end])
        torch.maximum(complete[end], complete[end - 1], out=complete[end])
    return is_new


def _carried_back(grad: Tensor, is_new: Tensor) -> Tensor:
    """The gradient of complete responses at their own end. [T, B, L H] -> same"""
    for end in range(len(grad) - 1, 0, -1):
        grad[end - 1] += grad[end] * ~is_new[end]
    return grad * is_new
