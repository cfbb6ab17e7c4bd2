"""Ragged arrays and scores: the operations that several packages need.

A ragged array holds slices of different lengths in one flat array.

Shapes: B slices or histories, P places, K best places, T slots.
"""

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
Floats = NDArray[np.float64]


def ranges(lengths: Numbers) -> Numbers:
    """0, 1, ..., n - 1 for each length n, concatenated. [B] -> [sum of lengths]"""
    starts = np.cumsum(lengths) - lengths
    within: Numbers = np.arange(lengths.sum()) - np.repeat(starts, lengths)
    return within


def pad_left(
    begins: Numbers, ends: Numbers, *, most: int | None = None
) -> tuple[Numbers, NDArray[np.bool_]]:
    """Indices of the slices `begins[b]:ends[b]` as rows, and which of them are real. [B, T] each

    Rows are left-padded with index 0 to the longest slice; a longer slice than `most` keeps its
    last indices. There is at least one slot.
    """
    longest = max(int((ends - begins).max(initial=0)), 1)
    slots = longest if most is None else min(longest, most)
    indices = ends[:, None] + np.arange(-slots, 0)  # [B, T]
    is_real = indices >= begins[:, None]  # [B, T]
    return np.where(is_real, indices, 0), is_real


def k_best(scores: NDArray[np.floating], k: int) -> Numbers:
    """Numbers of the k highest scores, best first; equal scores by number. [P] -> [K]

    All of them if there are fewer. Only those are sorted, as sorting all would cost more.
    """
    k = min(k, len(scores))
    if k == 0:
        return np.empty(0, dtype=np.int64)
    lowest = np.partition(scores, len(scores) - k)[len(scores) - k]
    above = np.flatnonzero(scores > lowest)
    above = above[np.argsort(-scores[above], kind="stable")]
    level = np.flatnonzero(scores == lowest)[: k - len(above)]
    return np.concatenate([above, level])


def log_sum_exp(scores: NDArray[np.float32]) -> Floats:
    """Logarithm of the sum of exp(score) over places. [B, P] -> [B]"""
    highest = scores.max(axis=1, keepdims=True).astype(np.float64)  # [B, 1]
    total: Floats = np.exp(scores - highest).sum(axis=1)
    found: Floats = highest[:, 0] + np.log(total)
    return found
