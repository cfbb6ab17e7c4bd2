"""How well shortlists of several sizes agree with exact scores, on some histories.

One exact and one cheap scoring of a history tell it of every size at once: a shortlist finds a
place if it is at least as long as the place's rank among the allowed ones by the cheap terms and
the forecast of the reader. Each history is asked twice, for any place and for new ones: there the
reader matters most.

Shapes: B histories, P places, K best places.
"""

from collections.abc import Iterable, Sequence
from itertools import islice
from time import perf_counter
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray

from castpoi.checkins.city import REVISIT_WINDOW
from castpoi.model.ranker import CastPoiRanker
from castpoi.recommend.history import History, end_to_end
from castpoi.recommend.shortlist_choice import NOT_MEASURED, Agreement

SIZES: Final = (64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048)
"""Shortlists that are tried."""
MOST_HISTORIES: Final = 50
MOST_SECONDS: Final = 2.0
"""No further history is begun after so long."""

_TOP: Final = 10

Needed = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Sizes that find each of the best places, where any may be recommended and where only new ones
may. [K], [K]"""


def agreement_of(
    ranker: CastPoiRanker,
    histories: Iterable[History],
    *,
    sizes: Sequence[int] = SIZES,
    most_seconds: float = MOST_SECONDS,
) -> Agreement:
    """How much of the exact best places shortlists find, on as many histories as time allows.

    Sizes that would hold all places are left out. At least one history is tried, and none that
    is empty.
    """
    began = perf_counter()
    left = islice((each for each in histories if len(each)), MOST_HISTORIES)
    tried: list[Needed] = []
    # as many together as there are cores: each history is scored by one
    while together := list(islice(left, torch.get_num_threads())):
        tried += needed_sizes(ranker, together)
        if perf_counter() - began > most_seconds:
            break
    if not tried:
        return NOT_MEASURED
    anywhere, new = (np.concatenate(needed) for needed in zip(*tried, strict=True))
    shorter = [size for size in sizes if size < ranker.places]
    return Agreement(
        anywhere={size: _share_within(anywhere, size) for size in shorter},
        new={size: _share_within(new, size) for size in shorter},
        histories=len(tried),
    )


def needed_sizes(
    ranker: CastPoiRanker, histories: Sequence[History], *, top: int = _TOP
) -> list[Needed]:
    """For each history, the shortest shortlists that find its exact best places, any and new."""
    encoded = ranker.encode(end_to_end(histories))
    exact = ranker.score(encoded)  # [B, P]
    cheap = ranker.scorer.foretold(encoded).float().cpu().numpy()  # [B, P]
    everywhere = np.arange(ranker.places)
    found = []
    for each, history in enumerate(histories):
        new = np.setdiff1d(everywhere, history.place[-REVISIT_WINDOW:])
        found.append(
            (
                _ranks(exact[each], cheap[each], everywhere, top),
                _ranks(exact[each], cheap[each], new, top),
            )
        )
    return found


def _ranks(
    exact: NDArray[np.float32], cheap: NDArray[np.float32], allowed: NDArray[np.int64], top: int
) -> NDArray[np.int64]:
    """The rank by the cheap terms, from 1, of each of the best allowed places. [P], [P] -> [K]"""
    best = allowed[np.argsort(-exact[allowed], kind="stable")[:top]]  # [K]
    return np.searchsorted(np.sort(-cheap[allowed]), -cheap[best]) + 1


def _share_within(needed: NDArray[np.int64], size: int) -> float:
    """Share of places that a shortlist of this size finds; of none it misses none."""
    return float((needed <= size).mean()) if len(needed) else 1.0
