"""CaST-POI behind the one protocol of every ranking method: numpy in, numpy out.

Shapes: B histories, P places, C candidates.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from castpoi.checkins.trajectory import Histories
from castpoi.errors import BadInput
from castpoi.model.batch import BatchBuilder
from castpoi.model.castpoi import CastPoi, Encoded
from castpoi.model.scoring import CHUNK, ExactScorer


class CastPoiRanker:
    """Ranks places with a CaST-POI model whose weights no longer change."""

    def __init__(self, model: CastPoi, builder: BatchBuilder, *, chunk: int = CHUNK) -> None:
        self.model = model.eval()
        self.builder = builder
        self.scorer = ExactScorer(model, chunk=chunk)

    @property
    def places(self) -> int:
        """Number of places in the vocabulary, P."""
        return self.model.place_count

    @torch.inference_mode()
    def encode(self, histories: Histories) -> Encoded:
        """Read a batch of histories once, before any place is scored."""
        batch = self.builder.build(histories)
        return self.model.encode(batch.to(self.model.popularity.device))

    def score(
        self, encoded: Encoded, candidates: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        """Score every place, or candidates shared or each history's own. [B, P] or [B, C]"""
        if candidates is None:
            return self._as_numpy(self.scorer.score(encoded))
        outside = (candidates < 0) | (candidates >= self.places)
        if outside.any():
            raise BadInput(
                f"candidate {candidates[outside][0]} is no place of the city; "
                f"its places are 0 to {self.places - 1}"
            )
        rows = torch.from_numpy(candidates + 1).to(self.model.popularity.device)
        return self._as_numpy(self.scorer.score(encoded, rows))

    @staticmethod
    def _as_numpy(scores: torch.Tensor) -> NDArray[np.float32]:
        array: NDArray[np.float32] = scores.float().cpu().numpy()
        return array
