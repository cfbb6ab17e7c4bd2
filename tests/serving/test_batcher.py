"""Items that wait for one worker: batches in order, bounded, and never lost."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from functools import wraps
from typing import Any

from castpoi.core.errors import BadInput, Overloaded
from castpoi.serving.batcher import Batcher
from tests.messages import refused


def in_a_loop(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Run an asynchronous test in an event loop."""

    @wraps(test)
    def run() -> None:
        asyncio.run(test())

    return run


class Worker:
    """Doubles numbers once its gate is open, and records its batches."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.begun = threading.Event()
        self.batches: list[list[int]] = []
        self.threads: set[int] = set()

    def __call__(self, numbers: Sequence[int]) -> list[int | Exception]:
        self.batches.append(list(numbers))
        self.threads.add(threading.get_ident())
        self.begun.set()
        assert self.gate.wait(timeout=20)
        if 13 in numbers:
            raise RuntimeError("the whole batch fails")
        return [BadInput("odd") if number == 7 else 2 * number for number in numbers]


def batcher_of(worker: Worker, *, together: int = 8, waiting: int = 100) -> Batcher[int, int]:
    return Batcher(worker, thread="worker", max_batch=together, max_waiting=waiting)


async def begun(worker: Worker) -> None:
    assert await asyncio.to_thread(worker.begun.wait, 20)


@in_a_loop
async def test_a_first_item_is_answered_at_once_and_later_ones_in_batches() -> None:
    worker = Worker()
    batcher = batcher_of(worker, together=3)
    first = asyncio.create_task(batcher.submit(1))
    await begun(worker)
    others = [asyncio.create_task(batcher.submit(number)) for number in range(2, 7)]
    await asyncio.sleep(0)
    assert batcher.waiting == 5
    worker.gate.set()
    assert await asyncio.gather(first, *others) == [2, 4, 6, 8, 10, 12]
    assert worker.batches == [[1], [2, 3, 4], [5, 6]]
    assert batcher.waiting == 0
    await batcher.close()


@in_a_loop
async def test_the_work_runs_in_one_other_thread_and_never_blocks_the_loop() -> None:
    worker = Worker()
    batcher = batcher_of(worker)
    submitted = asyncio.create_task(batcher.submit(1))
    await begun(worker)
    for _ in range(50):  # the loop runs while the worker waits
        await asyncio.sleep(0)
    assert not submitted.done()
    worker.gate.set()
    await submitted
    await batcher.submit(2)
    assert len(worker.threads) == 1
    assert threading.get_ident() not in worker.threads
    await batcher.close()


@in_a_loop
async def test_one_item_above_the_limit_is_rejected() -> None:
    worker = Worker()
    batcher = batcher_of(worker, waiting=2)
    tasks = [asyncio.create_task(batcher.submit(0))]
    await begun(worker)
    tasks += [asyncio.create_task(batcher.submit(number)) for number in (1, 2)]
    await asyncio.sleep(0)
    with refused(Overloaded):
        await batcher.submit(3)
    worker.gate.set()
    assert await asyncio.gather(*tasks) == [0, 2, 4]
    await batcher.close()


@in_a_loop
async def test_an_error_of_one_item_does_not_affect_others() -> None:
    worker = Worker()
    worker.gate.set()
    batcher = batcher_of(worker)
    answers = await asyncio.gather(*map(batcher.submit, (6, 7, 8)), return_exceptions=True)
    assert answers[0] == 12
    assert isinstance(answers[1], BadInput)
    assert answers[2] == 16
    await batcher.close()


@in_a_loop
async def test_a_failed_batch_is_an_error_for_each_item_and_the_next_one_is_answered() -> None:
    worker = Worker()
    worker.gate.set()
    batcher = batcher_of(worker, together=2)
    answers = await asyncio.gather(*map(batcher.submit, (13, 1, 2)), return_exceptions=True)
    assert [str(answer) for answer in answers[:2]] == ["the whole batch fails"] * 2
    assert answers[2] == 4
    await batcher.close()


@in_a_loop
async def test_cancelled_items_are_skipped() -> None:
    worker = Worker()
    batcher = batcher_of(worker)
    running = asyncio.create_task(batcher.submit(1))
    await begun(worker)
    waits, stays = (asyncio.create_task(batcher.submit(number)) for number in (2, 3))
    await asyncio.sleep(0)
    for gone in (running, waits):
        gone.cancel()
    worker.gate.set()
    assert await asyncio.wait_for(stays, timeout=20) == 6
    assert worker.batches == [[1], [3]]
    await batcher.close()


@in_a_loop
async def test_closing_answers_all_waiting_items() -> None:
    worker = Worker()
    batcher = batcher_of(worker, together=1)
    tasks = [asyncio.create_task(batcher.submit(number)) for number in range(4)]
    await begun(worker)
    closing = asyncio.create_task(batcher.close())
    await asyncio.sleep(0)
    worker.gate.set()
    await closing
    assert [task.result() for task in tasks] == [0, 2, 4, 6]
