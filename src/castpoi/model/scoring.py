"""Exact scores of all places of a city, of given places, or of a shortlist.

Shapes: B histories, C candidates, M shortlisted places, P places.
"""

from typing import Final

import torch
from torch import Tensor

from castpoi.model.castpoi import CastPoi
from castpoi.model.terms.base import Encoded, cheap_scores
from castpoi.model.terms.reader_fast import FastReader, cores_for

CHUNK: Final = 1024
"""Candidates scored at once."""


class ExactScorer:
    """Scores places with the present weights of a model.

    It caches what does not depend on the user: create a new scorer after further training.
    """

    def __init__(self, model: CastPoi, *, chunk: int = CHUNK) -> None:
        self.model = model
        self.chunk = chunk
        with torch.no_grad():
            self.table = model.table().detach()
        self.reader = None if model.reader is None else FastReader(model.reader, self.table)

    @torch.inference_mode()
    def score(self, encoded: Encoded, candidates: Tensor | None = None) -> Tensor:
        """Score all places, or candidates, shared or each history's own. [C] or [B, C] -> [B, C]"""
        with cores_for(len(encoded)):
            scores = self.cheap(encoded, candidates)
            if self.reader is None or not scores.numel():
                return scores
            if candidates is None:
                candidates = torch.arange(self.model.place_count, device=scores.device)
            if candidates.ndim == 1:
                self.reader.add_shared_(scores, encoded, candidates, chunk=self.chunk)
            else:
                self.reader.add_own_(scores, encoded, candidates)
            return scores

    @torch.inference_mode()
    def cheap(self, encoded: Encoded, candidates: Tensor | None = None) -> Tensor:
        """The score without the reader. [C] or [B, C] -> [B, C] or [B, P]"""
        vectors, popularity = self.table.vectors[1:], self.table.popularity[1:]
        if candidates is not None and candidates.ndim == 1:
            scores = torch.addmm(popularity[candidates], encoded.state, vectors[candidates].mT)
            for _, term in self.model.named_terms():
                scores.add_(term.at(encoded, candidates))
            return scores
        # scoring all places is cheaper than copying the vectors of each history's own candidates
        spreads = self.model.spreads(encoded)
        scores = cheap_scores(encoded.state, vectors, popularity, spreads)  # [B, P]
        return scores if candidates is None else scores.gather(1, candidates)

    @torch.inference_mode()
    def forecast(self, encoded: Encoded) -> Tensor:
        """The score of every place with the forecast in place of the reader. -> [B, P]"""
        with cores_for(len(encoded)):
            scores = self.cheap(encoded)
            forecast = self.model.forecast
            return (
                scores if forecast is None else scores.add_(forecast(encoded, encoded.is_known()))
            )

    @torch.inference_mode()
    def shortlisted(self, encoded: Encoded, size: int) -> Tensor:
        """Exact scores of the best places by forecast; all others are below, by forecast. [B, P]"""
        scores = self.forecast(encoded)
        shortlist = scores.topk(min(size, scores.shape[1]), dim=1, sorted=False).indices  # [B, M]
        exact = self.score(encoded, shortlist)
        # scores with and without the reader cannot be compared, only their differences: all other
        # places come after the shortlist, in their own order
        below = exact.amin(dim=1, keepdim=True) - scores.amax(dim=1, keepdim=True) - 1
        return scores.add_(below).scatter_(1, shortlist, exact)
