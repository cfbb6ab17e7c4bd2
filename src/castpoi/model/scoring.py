"""Exact scores of all places of a city, fast on a CPU.

The score is that of `castpoi.py` to float tolerance. What makes it cheap:

- What does not depend on the user is computed once a place: the first layer's queries and the
  candidate's share of the head's first layer.
- One history meets one chunk of candidates at a time, on one core, so that all that is written is
  read again from that core's cache. Its visits are taken without padding.
- Attention is laid out visits x candidates, all else candidates x width. Splitting and joining
  heads is then a view, the softmax runs along long rows, and every product is one large GEMM.
- Distance biases are looked up once a chunk for all places that any history visits.

Shapes: B histories, C candidates of a chunk, T visits, V distinct visited places, D width,
H heads.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from castpoi.model.castpoi import CastPoi, Encoded, Refinement
from castpoi.model.reader import CandidateReader, ReaderBlock
from castpoi.model.shared_vectors import PlaceTable
from castpoi.model.workers import cores_for, workers

CHUNK: Final = 1024
"""Candidates scored at once."""

_VISITED_AT_ONCE: Final = 4096  # places; bounds the memory of distances that are not kept


@dataclass(frozen=True, kw_only=True)
class _Chunk:
    """Candidates and what each brings along, whoever the user is."""

    vectors: Tensor
    """[C, D]"""
    queries: Tensor
    """What they ask in the first layer. [D, C]"""
    share: Tensor
    """Their share of the head's first layer. [C, D]"""


@dataclass(frozen=True, kw_only=True)
class _Memory:
    """What the visits of one history answer in one layer."""

    keys: Tensor
    """[H, T, D / H]"""
    values: Tensor
    """[H, D / H, T]"""


@dataclass(frozen=True, kw_only=True)
class _History:
    """What one history answers to any candidate."""

    visited: Tensor
    """Which places it visits, by number among those whose distances are known. [T]"""
    memories: list[_Memory]
    """One a layer."""
    temporal: Tensor | None
    """Bias of the age of each visit. [T, 1]"""


class ExactScorer:
    """Scores every place, or given candidates, with the weights the model has now.

    What is cached does not follow later training steps: make a new scorer after them.
    """

    def __init__(self, model: CastPoi, *, chunk: int = CHUNK) -> None:
        self.model = model
        self.chunk = chunk
        with torch.no_grad():
            self.places = model.table().detach()
        refinement = model.refinement
        self.reader = None if refinement is None else _PlaceReader(model, refinement, self.places)

    @torch.inference_mode()
    def score(self, encoded: Encoded, candidates: Tensor | None = None) -> Tensor:
        """Score all places, or rows shared or each history's own. [C] or [B, C] -> [B, C]"""
        with cores_for(len(encoded)):
            scores = self.quick(encoded, candidates)
            if self.reader is None or not scores.numel():
                return scores
            if candidates is None:
                candidates = torch.arange(1, self.model.place_count + 1, device=scores.device)
            if candidates.ndim == 1:
                self.reader.add_shared(scores, encoded, candidates, chunk=self.chunk)
            else:
                self.reader.add_own(scores, encoded, candidates)
            return scores

    @torch.inference_mode()
    def quick(self, encoded: Encoded, candidates: Tensor | None = None) -> Tensor:
        """The score without the reader: all other terms for the price of one. -> [B, C]

        To score all places is cheaper than to name them all: their vectors are not copied.
        """
        model, places = self.model, self.places
        if candidates is not None and candidates.ndim == 1:
            scores = torch.addmm(
                places.popularity[candidates], encoded.state, places.vectors[candidates].mT
            )  # [B, C]
            scores.add_(model.revisit(encoded)[:, candidates])
        else:
            every = places.vectors[1:]  # [P, D]
            scores = torch.addmm(places.popularity[1:], encoded.state, every.mT)  # [B, P]
            scores.add_(model.revisit(encoded)[:, 1:])
            scores = scores if candidates is None else scores.gather(1, candidates - 1)
        if model.distance_gate is not None:
            scores.add_(model.distance(encoded, candidates))
        return scores

    @torch.inference_mode()
    def foretold(self, encoded: Encoded) -> Tensor:
        """The score of every place with the forecast in the reader's place. -> [B, P]"""
        state, known = encoded.state, encoded.revisits
        is_known = state.new_zeros(len(encoded), self.model.place_count)
        is_known[known.owner, known.row - 1] = 1.0
        with cores_for(len(encoded)):
            guess = self.model.foretell(self.places, state, encoded.anchors, is_known)
            return self.quick(encoded).add_(guess)


class _PlaceReader:
    """The reader's term for chunks of places."""

    @torch.inference_mode()
    def __init__(self, model: CastPoi, refinement: Refinement, places: PlaceTable) -> None:
        self.distances = model.distances
        self.refinement = refinement
        self.layers = [_Layer(block) for block in _blocks(refinement.reader)]
        head = refinement.head
        self.of_reading, of_candidate, self.of_product = (
            part.mT.contiguous() for part in head.mix.weight.chunk(3, dim=1)
        )  # [D, D] each
        self.vectors = places.vectors  # [P + 1, D]
        self.shares = torch.addmm(head.mix.bias, self.vectors, of_candidate)  # [P + 1, D]
        self.queries = self.layers[0].ask(self.vectors).mT.contiguous()  # [P + 1, D]

    def add_shared(
        self, scores: Tensor, encoded: Encoded, candidates: Tensor, *, chunk: int
    ) -> None:
        """Add the reader's term for candidates shared by all histories. [B, C], [C]"""
        visited, number = torch.unique(encoded.row, return_inverse=True)  # [V], [B, T]
        histories = [self._remember(encoded, number, each) for each in range(len(encoded))]
        parts = zip(torch.split(candidates, chunk), torch.split(scores, chunk, dim=1), strict=True)
        with workers(scores.device) as for_each:
            for rows, part in parts:
                far = self._spatial(visited, rows)  # [V, C]
                for_each(partial(self._add, part, self._chunk(rows), far, histories), len(part))

    def _add(
        self, scores: Tensor, chunk: _Chunk, far: Tensor, histories: list[_History], each: int
    ) -> None:
        """Add the reader's term of one history for a chunk. [B, C], chunk, [V, C]"""
        bias = far.index_select(0, histories[each].visited)  # [T, C]
        scores[each] += self._refine(chunk, histories[each], bias)

    def add_own(self, scores: Tensor, encoded: Encoded, candidates: Tensor) -> None:
        """Add the reader's term for each history's own candidates. [B, C], [B, C]"""

        def add(each: int) -> None:
            history = self._remember(encoded, encoded.row, each)
            bias = self._spatial(history.visited, candidates[each])  # [T, C]
            scores[each] += self._refine(self._chunk(candidates[each]), history, bias)

        with workers(scores.device) as for_each:
            for_each(add, len(encoded))

    def _chunk(self, rows: Tensor) -> _Chunk:
        return _Chunk(
            vectors=self.vectors[rows],
            queries=self.queries[rows].mT.contiguous(),
            share=self.shares[rows],
        )

    def _remember(self, encoded: Encoded, visited: Tensor, each: int) -> _History:
        """What one history answers to any candidate, without its padding. visited: [B, T]"""
        # an empty history keeps one empty slot, whose answer is zero
        slots = slice(-max(1, int(encoded.is_real[each].sum())), None)
        visits = self.refinement.reader.placed(encoded.visits[each, slots])
        is_real = encoded.is_real[each, slots]
        age = self.refinement.temporal_bias
        return _History(
            visited=visited[each, slots],
            memories=[layer.remember(visits, is_real) for layer in self.layers],
            temporal=None if age is None else age(encoded.age_us[each, slots]).unsqueeze(1),
        )

    def _spatial(self, visited: Tensor, candidates: Tensor) -> Tensor:
        """Distance bias of visited places and candidates. [V], [C] -> [V, C]"""
        if self.refinement.spatial_bias is None:
            return self.vectors.new_zeros(len(visited), len(candidates))
        blocks = torch.split(visited, _VISITED_AT_ONCE)
        buckets = (self.distances.between(block, candidates) for block in blocks)
        return torch.cat([self.refinement.spatial_bias(block) for block in buckets])

    def _refine(self, chunk: _Chunk, history: _History, bias: Tensor) -> Tensor:
        """The reader's term of one history for a chunk; uses up the spatial bias. [T, C] -> [C]"""
        if history.temporal is not None:
            bias.add_(history.temporal)
        reading, queries = chunk.vectors, chunk.queries
        for number, (layer, memory) in enumerate(zip(self.layers, history.memories, strict=True)):
            queries = queries if number == 0 else layer.ask(reading)  # [D, C]
            reading = layer.read(reading, queries, memory, bias)  # [C, D]
        mixed = torch.addmm(chunk.share, reading, self.of_reading)
        mixed.addmm_(reading * chunk.vectors, self.of_product)
        last = self.refinement.head.last
        refined = torch.addmv(last.bias, F.gelu(mixed), last.weight[0])
        return refined.mul_(self.refinement.gamma)


class _Layer:
    """One block of the reader, with its weights laid out for large products."""

    def __init__(self, block: ReaderBlock) -> None:
        attention, forward = block.attention, block.feed_forward
        self.block = block
        self.heads = attention.heads
        self.query = attention.query.weight
        self.query_bias = attention.query.bias.unsqueeze(1)  # [D, 1]
        self.mix = attention.mix.weight.mT.contiguous()
        self.widen = forward.widen.weight.mT.contiguous()
        self.narrow = forward.narrow.weight.mT.contiguous()

    def ask(self, candidates: Tensor) -> Tensor:
        """What candidates ask. [C, D] -> [D, C]"""
        return torch.addmm(self.query_bias, self.query, candidates.mT)

    def remember(self, visits: Tensor, is_real: Tensor) -> _Memory:
        """What visits answer. [T, D], [T] -> memory"""
        attention = self.block.attention
        keys = attention.keys(visits).view(len(visits), self.heads, -1)  # [T, H, D / H]
        values = (attention.value(visits) * is_real.unsqueeze(1)).view(keys.shape)
        return _Memory(
            keys=keys.transpose(0, 1).contiguous(),
            values=values.permute(1, 2, 0).contiguous(),
        )

    def read(self, reading: Tensor, queries: Tensor, memory: _Memory, bias: Tensor) -> Tensor:
        """Candidates after one reading. [C, D], [D, C], memory, [T, C] -> [C, D]"""
        block, forward = self.block, self.block.feed_forward
        match = memory.keys @ queries.view(self.heads, -1, queries.shape[1])  # [H, T, C]
        match.add_(bias)
        away, top = block.attention.away, match.amax(dim=1, keepdim=True)  # [H, 1, C]
        top = top if away is None else torch.maximum(top, away)
        whole = match.sub_(top).exp_().sum(dim=1, keepdim=True)
        if away is not None:
            whole.add_(away.sub(top).exp_())
        # softmax divides by the sum; to divide what is found is to divide fewer numbers
        found = (memory.values @ match).div_(whole)  # [H, D / H, C]
        reading = torch.addmm(reading, found.flatten(0, 1).mT, self.mix)  # [C, D]
        reading = block.attention_norm(reading.add_(block.attention.mix.bias))
        inner = torch.addmm(forward.widen.bias, reading, self.widen).relu_()  # [C, F]
        # twice the input: the feed-forward part adds it once, the block once more
        reading.addmm_(inner, self.narrow, beta=2).add_(forward.narrow.bias)
        normed: Tensor = block.feed_forward_norm(reading)
        return normed


def _blocks(reader: CandidateReader) -> Iterator[ReaderBlock]:
    for block in reader.blocks:
        assert isinstance(block, ReaderBlock)
        yield block
