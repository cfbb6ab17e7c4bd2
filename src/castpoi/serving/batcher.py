"""Batches of requests that wait for the model or for the store.

A request that finds the worker idle is answered at once. Requests that come during work wait for
the next batch: the busier the service, the larger its batches, and no timer delays a single
request. The work runs in a thread of its own, so the event loop is always free.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Generic, TypeVar

from castpoi.core.errors import Overloaded

Item = TypeVar("Item")
Answer = TypeVar("Answer")

RETRY_SECONDS: Final = 1
"""When to try again after a rejection."""


class Batcher(Generic[Item, Answer]):
    """Answers items in batches, in the order of their arrival.

    `answer_all` runs in a thread. It returns an answer or an exception for each item; if it raises
    one, that is the answer to the whole batch.
    """

    def __init__(
        self,
        answer_all: Callable[[Sequence[Item]], Sequence[Answer | Exception]],
        *,
        thread: str,
        max_batch: int,
        max_waiting: int,
    ) -> None:
        self.answer_all = answer_all
        self.max_batch = max_batch
        self.max_waiting = max_waiting
        self._waiting: deque[tuple[Item, asyncio.Future[Answer]]] = deque()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=thread)
        self._working: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        """Number of items that are not in a batch yet."""
        return len(self._waiting)

    async def submit(self, item: Item) -> Answer:
        """The answer to an item; raises `Overloaded` at once if too many wait already."""
        if len(self._waiting) >= self.max_waiting:
            raise Overloaded(
                f"{self.max_waiting} requests wait already, which is the limit; "
                f"try again in {RETRY_SECONDS} s"
            )
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, answer))
        if self._working is None or self._working.done():
            self._working = asyncio.create_task(self._work())
        return await answer

    async def close(self) -> None:
        """Answer all items that wait, then end the thread."""
        if self._working is not None:
            await self._working
        await asyncio.to_thread(self._thread.shutdown)

    async def _work(self) -> None:
        """Answer batch after batch until no item waits."""
        loop = asyncio.get_running_loop()
        while self._waiting:
            size = min(self.max_batch, len(self._waiting))
            batch = [self._waiting.popleft() for _ in range(size)]
            batch = [(item, answer) for item, answer in batch if not answer.done()]
            items = [item for item, _ in batch]
            try:
                answers = await loop.run_in_executor(self._thread, self.answer_all, items)
                settled = list(zip(batch, answers, strict=True))
            except Exception as problem:
                settled = [(waiting, problem) for waiting in batch]
            for (_, future), answer in settled:
                _settle(future, answer)


def _settle(future: "asyncio.Future[Answer]", answer: Answer | Exception) -> None:
    if future.done():  # the client has left
        return
    if isinstance(answer, Exception):
        future.set_exception(answer)
    else:
        future.set_result(answer)
