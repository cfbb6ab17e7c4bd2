"""Row-sparse gradients of several processes, here threads that exchange tensors."""

from threading import Barrier, Thread, get_ident
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from castpoi.training.distributed import ProcessGroup
from castpoi.training.job import World
from castpoi.training.rows import SparseRows

PLACES, WIDTH = 7, 3


def bound_rows() -> tuple[SparseRows, nn.Parameter]:
    """Rows of a table, after no step."""
    weight = nn.Parameter(torch.arange(PLACES * WIDTH, dtype=torch.float32).view(PLACES, WIDTH))
    rows = SparseRows({"table": 0.1})
    state = {"exp_avg": torch.zeros(PLACES, WIDTH), "exp_avg_sq": torch.zeros(PLACES, WIDTH)}
    rows.bind({"table": weight}, {"table": state}, {"table": weight.detach().clone()}, 0)
    return rows, weight


def gradient(numbers: Tensor, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(len(numbers), WIDTH, generator=generator)  # [U, D]


class Exchange:
    """`all_gather` for the threads of a test, in the order in which they are numbered."""

    def __init__(self, ranks: int) -> None:
        self.sent: dict[int, Tensor] = {}
        self.rank: dict[int, int] = {}
        self.barrier = Barrier(ranks)

    def all_gather(self, every: list[Tensor], own: Tensor) -> None:
        self.sent[self.rank[get_ident()]] = own
        self.barrier.wait()
        for rank, each in enumerate(every):
            each.copy_(self.sent[rank])
        self.barrier.wait()


@pytest.mark.parametrize(
    "used", [([1, 3, 4], [3, 6]), ([0, 2], []), ([5], [5])], ids=["some", "none", "same"]
)
def test_processes_with_different_rows_take_the_step_of_one_process_with_all_rows(
    used: tuple[list[int], list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    exchange, shares = Exchange(2), (0.75, 0.25)
    monkeypatch.setattr("torch.distributed.all_gather", exchange.all_gather)
    tables: dict[int, Any] = {}

    def process(rank: int) -> None:
        exchange.rank[get_ident()] = rank
        rows, weight = bound_rows()
        numbers = torch.tensor(used[rank], dtype=torch.int64)
        leaves = rows.take(numbers)
        if len(numbers):
            leaves["table"].grad = gradient(numbers, rank)
        group = ProcessGroup(world=World(rank=rank, ranks=2))
        group.average_rows(rows, shares[rank])
        rows.step(0.1, 0.9)
        tables[rank] = weight.detach()

    threads = [Thread(target=process, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows, weight = bound_rows()
    union = torch.tensor(sorted({*used[0], *used[1]}))
    mean = torch.zeros(PLACES, WIDTH)
    for rank, numbers in enumerate(map(torch.tensor, used)):
        if len(numbers):
            mean[numbers] += shares[rank] * gradient(numbers, rank)
    rows.take(union)["table"].grad = mean[union]
    rows.step(0.1, 0.9)
    assert torch.equal(tables[0], tables[1])
    torch.testing.assert_close(tables[0], weight.detach())
