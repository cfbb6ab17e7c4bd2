"""The reader for all places of a city, fast on a CPU; the same term as `reader.py`.

- What does not depend on the user is computed once for each place: the queries of the first layer
  and the candidate's part of the first layer of the head.
- One history meets one chunk of candidates at a time, on one core, so that what is written is read
  again from the cache of that core. Its visits are used without padding.
- Attention has the layout visits x candidates, all else candidates x width. Splitting and joining
  heads is then a view, the softmax runs along long rows, and every product is one large GEMM.
- Distance biases are looked up once a chunk for all places that any history visits.
- Each history runs on one core, one worker a core. Many small tensor operations, each split over
  all cores, make the cores wait for each other after every one; if another program uses a core,
  they wait long (scoring once took twenty times as long).

Shapes: B histories, C candidates of a chunk, T visits, V distinct visited places, P places, D
width, H heads, F inner width.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Final, NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from castpoi.model.places import PlaceTable
from castpoi.model.terms.base import Encoded
from castpoi.model.terms.reader import Reader, ReaderBlock

_VISITED_AT_ONCE: Final = 4096  # places; bounds the memory of distances without a table

ForEach = Callable[[Callable[[int], None], int], None]
"""Calls a function with each number below a count."""


class _Chunk(NamedTuple):
    """Candidates, and what does not depend on the user."""

    vectors: Tensor  # [C, D]
    queries: Tensor  # of the first layer [D, C]
    shares: Tensor  # their part of the first layer of the head [C, D]


class _Memory(NamedTuple):
    """Keys and values of the visits of one history in one layer."""

    keys: Tensor  # [H, T, D / H]
    values: Tensor  # [H, D / H, T]


class _History(NamedTuple):
    """What does not depend on the candidate."""

    visited: Tensor  # visited places, as numbers among those whose distances are known [T]
    memories: list[_Memory]  # one a layer
    temporal: Tensor | None  # bias of the age of each visit [T, 1]


class FastReader:
    """The reader's term for chunks of places, with the present weights."""

    @torch.inference_mode()
    def __init__(self, reader: Reader, table: PlaceTable) -> None:
        self.reader = reader
        self.layers = [_Layer(block) for block in reader.layers]
        head = reader.head
        self.of_view, of_candidate, self.of_product = (
            part.mT.contiguous() for part in head.mix.weight.chunk(3, dim=1)
        )  # [D, D] each
        self.vectors = table.vectors[1:]  # [P, D]
        self.shares = torch.addmm(head.mix.bias, self.vectors, of_candidate)  # [P, D]
        self.queries = self.layers[0].query_of(self.vectors).mT.contiguous()  # [P, D]

    def add_shared_(
        self, scores: Tensor, encoded: Encoded, candidates: Tensor, *, chunk: int
    ) -> None:
        """Add the term of candidates shared by all histories. [B, C], [C]"""
        visited, number = torch.unique(encoded.place, return_inverse=True)  # [V], [B, T]
        histories = [self._history(encoded, number, each) for each in range(len(encoded))]
        parts = zip(torch.split(candidates, chunk), torch.split(scores, chunk, dim=1), strict=True)
        with workers(scores.device) as for_each:
            for places, part in parts:
                bias = self._spatial_bias(visited, places)  # [V, C]
                for_each(
                    partial(self._add_chunk_, part, self._chunk(places), bias, histories), len(part)
                )

    def _add_chunk_(
        self, scores: Tensor, chunk: _Chunk, far: Tensor, histories: list[_History], each: int
    ) -> None:
        """Add the term of one history for a chunk. [B, C], chunk, [V, C]"""
        bias = far.index_select(0, histories[each].visited)  # [T, C]
        scores[each] += self._term(chunk, histories[each], bias)

    def add_own_(self, scores: Tensor, encoded: Encoded, candidates: Tensor) -> None:
        """Add the term of each history's own candidates. [B, C], [B, C]"""

        def add(each: int) -> None:
            history = self._history(encoded, encoded.place, each)
            bias = self._spatial_bias(history.visited, candidates[each])  # [T, C]
            scores[each] += self._term(self._chunk(candidates[each]), history, bias)

        with workers(scores.device) as for_each:
            for_each(add, len(encoded))

    def _chunk(self, places: Tensor) -> _Chunk:
        queries = self.queries[places].mT.contiguous()
        return _Chunk(self.vectors[places], queries, self.shares[places])

    def _history(self, encoded: Encoded, visited: Tensor, each: int) -> _History:
        """The memories of one history, without its padding. visited: [B, T]"""
        # an empty history keeps one empty slot, whose value is zero
        slots = slice(-max(1, int(encoded.is_real[each].sum())), None)
        visits = self.reader.layers.with_offsets(encoded.visits[each, slots])
        is_real = encoded.is_real[each, slots]
        age = self.reader.temporal_bias
        return _History(
            visited=visited[each, slots],
            memories=[layer.memory(visits, is_real) for layer in self.layers],
            temporal=None if age is None else age(encoded.age_us[each, slots]).unsqueeze(1),
        )

    def _spatial_bias(self, visited: Tensor, candidates: Tensor) -> Tensor:
        """Distance bias of visited places and candidates. [V], [C] -> [V, C]"""
        if self.reader.spatial_bias is None:
            return self.vectors.new_zeros(len(visited), len(candidates))
        blocks = torch.split(visited, _VISITED_AT_ONCE)
        buckets = (self.reader.distances.between(block, candidates) for block in blocks)
        return torch.cat([self.reader.spatial_bias(block) for block in buckets])

    def _term(self, chunk: _Chunk, history: _History, bias: Tensor) -> Tensor:
        """The term of one history for a chunk; overwrites the spatial bias. [T, C] -> [C]"""
        if history.temporal is not None:
            bias.add_(history.temporal)
        views, queries = chunk.vectors, chunk.queries
        for number, (layer, memory) in enumerate(zip(self.layers, history.memories, strict=True)):
            queries = queries if number == 0 else layer.query_of(views)  # [D, C]
            views = layer.read(views, queries, memory, bias)  # [C, D]
        mixed = torch.addmm(chunk.shares, views, self.of_view)
        mixed.addmm_(views * chunk.vectors, self.of_product)
        last = self.reader.head.last
        return torch.addmv(last.bias, F.gelu(mixed), last.weight[0]).mul_(self.reader.gamma)


class _Layer:
    """One block of the reader, with its weights in the layout for large products."""

    def __init__(self, block: ReaderBlock) -> None:
        attention, forward = block.attention, block.feed_forward
        self.block = block
        self.heads = attention.heads
        self.query = attention.query.weight
        self.query_bias = attention.query.bias.unsqueeze(1)  # [D, 1]
        self.mix = attention.mix.weight.mT.contiguous()
        self.widen = forward.widen.weight.mT.contiguous()
        self.narrow = forward.narrow.weight.mT.contiguous()

    def query_of(self, candidates: Tensor) -> Tensor:
        """Queries of candidates. [C, D] -> [D, C]"""
        return torch.addmm(self.query_bias, self.query, candidates.mT)

    def memory(self, visits: Tensor, is_real: Tensor) -> _Memory:
        """Keys and values of visits. [T, D], [T] -> memory"""
        attention = self.block.attention
        keys = attention.keys(visits).view(len(visits), self.heads, -1)  # [T, H, D / H]
        values = (attention.value(visits) * is_real.unsqueeze(1)).view(keys.shape)
        return _Memory(keys.transpose(0, 1).contiguous(), values.permute(1, 2, 0).contiguous())

    def read(self, views: Tensor, queries: Tensor, memory: _Memory, bias: Tensor) -> Tensor:
        """Candidates after this layer. [C, D], [D, C], memory, [T, C] -> [C, D]"""
        block, forward = self.block, self.block.feed_forward
        match = memory.keys @ queries.view(self.heads, -1, queries.shape[1])  # [H, T, C]
        match.add_(bias)
        null, top = block.attention.null, match.amax(dim=1, keepdim=True)  # [H, 1, C]
        top = top if null is None else torch.maximum(top, null)
        whole = match.sub_(top).exp_().sum(dim=1, keepdim=True)
        if null is not None:
            whole.add_(null.sub(top).exp_())
        # softmax divides by the sum; the products are fewer numbers to divide
        found = (memory.values @ match).div_(whole)  # [H, D / H, C]
        views = torch.addmm(views, found.flatten(0, 1).mT, self.mix)  # [C, D]
        views = block.attention_norm(views.add_(block.attention.mix.bias))
        inner = torch.addmm(forward.widen.bias, views, self.widen).relu_()  # [C, F]
        # twice the input: the feed-forward layer adds it once, the block once more
        views.addmm_(inner, self.narrow, beta=2).add_(forward.narrow.bias)
        return block.feed_forward_norm(views)


@contextmanager
def workers(device: torch.device) -> Iterator[ForEach]:
    """As many workers as torch has threads; one on another device than the CPU."""
    threads = torch.get_num_threads() if device.type == "cpu" else 1
    if threads == 1:
        yield _one_by_one
        return
    with ThreadPoolExecutor(threads, initializer=partial(torch.set_num_threads, 1)) as pool:
        try:
            yield lambda work, count: _spread(pool, work, count)
        finally:
            # the limit of a thread is also the limit of all threads started later
            torch.set_num_threads(threads)


def _one_by_one(work: Callable[[int], None], count: int) -> None:
    for number in range(count):
        work(number)


def _spread(pool: ThreadPoolExecutor, work: Callable[[int], None], count: int) -> None:
    def without_gradients(number: int) -> None:
        with torch.inference_mode():  # holds for one thread only
            work(number)

    for _ in pool.map(without_gradients, range(count)):
        pass


@contextmanager
def cores_for(histories: int) -> Iterator[None]:
    """All cores for many histories; one core for a single history.

    Waking another core for each of a hundred small operations takes longer than computing them.
    """
    threads = torch.get_num_threads()
    if histories > 1 or threads == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
