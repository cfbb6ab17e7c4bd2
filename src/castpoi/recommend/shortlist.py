"""A shortlist for large vocabularies: CaST-POI's reader reads for a few hundred places only.

The shortlist are the best allowed places by the cheap terms and the forecast of the reader (see
`model/scoring.py`). What the reader would add to all others is estimated from places spread evenly
over the vocabulary; the estimate enters nothing but the sum under the softmax.

Shapes: B histories, P places, S places of the shortlist, E evenly spread places.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from castpoi.core.arrays import log_sum_exp
from castpoi.model.ranker import CastPoiRanker
from castpoi.recommend.history import History, end_to_end
from castpoi.recommend.place_book import PlaceBook
from castpoi.recommend.scores import PlaceScorer, Scores

_EVENLY_SPREAD: Final = 64


class ShortlistScorer(PlaceScorer):
    """Scores a shortlist exactly and everything else roughly."""

    def __init__(
        self, ranker: CastPoiRanker, places: PlaceBook, size: int, size_new: int | None = None
    ) -> None:
        super().__init__(ranker, places)
        self.castpoi = ranker
        self.size = size
        # where no visited place may come, the reader decides more, and more has to be read for
        self.size_new = size if size_new is None else size_new
        spread = np.linspace(0, len(places) - 1, min(_EVENLY_SPREAD, len(places)))
        self.evenly = np.unique(spread.astype(np.int64))  # [E]

    def read(
        self, histories: Sequence[History], is_allowed: NDArray[np.bool_], k: NDArray[np.int64]
    ) -> Scores:
        """Score a shortlist exactly for each history, of at least k places. B, [B, P], [B]"""
        score = np.empty(is_allowed.shape, dtype=np.float32)
        is_eligible = np.zeros_like(is_allowed)
        asks_new = [
            not allowed[history.place].any()
            for history, allowed in zip(histories, is_allowed, strict=True)
        ]
        wanted = np.where(asks_new, self.size_new, self.size)  # [B]
        sizes = np.minimum(np.maximum(wanted, k), len(self.places))
        # one size at a time, so that a large request changes nothing for those it is batched with
        for size in np.unique(sizes).tolist():
            group = np.flatnonzero(sizes == size)
            own = [histories[each] for each in group.tolist()]
            if size == len(self.places):
                exact = super().read(own, is_allowed[group], k[group])
                score[group], is_eligible[group] = exact.score, exact.is_eligible
            else:
                score[group], is_eligible[group] = self._read_for(own, is_allowed[group], size)
        return Scores(score=score, is_eligible=is_eligible, log_total=log_sum_exp(score))

    def _read_for(
        self, histories: Sequence[History], is_allowed: NDArray[np.bool_], size: int
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        encoded = self.castpoi.encode(end_to_end(histories))
        foretold = self.castpoi.scorer.foretold(encoded)  # [B, P]
        cheap: NDArray[np.float32] = foretold.float().cpu().numpy()
        wanted = np.where(is_allowed, -cheap, np.inf)
        shortlist = np.argpartition(wanted, size - 1, axis=1)[:, :size]  # [B, S]
        evenly = np.broadcast_to(self.evenly, (len(histories), len(self.evenly)))  # [B, E]
        exact = self.castpoi.score(encoded, np.concatenate([shortlist, evenly], axis=1))
        added = exact[:, size:] - np.take_along_axis(cheap, evenly, axis=1)  # [B, E]
        usual = log_sum_exp(added)[:, None] - np.log(len(self.evenly))  # [B, 1]
        score = (cheap + usual).astype(np.float32)  # [B, P]
        np.put_along_axis(score, shortlist, exact[:, :size], axis=1)
        is_short = np.zeros_like(is_allowed)
        np.put_along_axis(is_short, shortlist, True, axis=1)
        return score, is_allowed & is_short
