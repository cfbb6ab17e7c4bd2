"""Holm-Bonferroni: p-values of one family of tests, corrected for their number (Holm 1979)."""

from collections.abc import Sequence

import numpy as np

from castpoi.core.errors import BadInput


def holm(p_values: Sequence[float]) -> list[float]:
    """Each p corrected for the family it stands in, in the given order; at most 1.

    The smallest of m is multiplied by m, the next by m - 1, and so on; none may be smaller than
    one before it. To reject where the corrected p is below alpha errs anywhere in the family with
    a chance of at most alpha.
    """
    p = np.asarray(p_values, dtype=np.float64)
    if np.isnan(p).any() or (p < 0).any() or (p > 1).any():
        raise BadInput(f"{list(p_values)} are not all p-values; each must lie between 0 and 1")
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(stepped, 1.0)
    return corrected.tolist()
