"""Requests that wait for the model, or for the store, together are answered together.

A request that meets an idle worker is answered at once. Those that come while it works
wait, a few milliseconds each, and go into the next batch: the busier the service, the larger its
batches, without a timer that would delay the lonely request.

The work is done in one thread of its own, so the event loop is always free for others.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Generic, TypeVar

from castpoi.core.errors import Overloaded

Question = TypeVar("Question")
Answer = TypeVar("Answer")

RETRY_SECONDS: Final = 1
"""When to come back after being turned away."""


class Batcher(Generic[Question, Answer]):
    """Answers questions in batches, in the order they came.

    `answer_all` runs in a thread. It gives an answer or an exception for each question; what it
    raises itself is the fate of the whole batch.
    """

    def __init__(
        self,
        answer_all: Callable[[Sequence[Question]], Sequence[Answer | Exception]],
        *,
        thread: str,
        most_together: int,
        most_waiting: int,
    ) -> None:
        self.answer_all = answer_all
        self.most_together = most_together
        self.most_waiting = most_waiting
        self._waiting: deque[tuple[Question, asyncio.Future[Answer]]] = deque()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=thread)
        self._working: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        """Number of questions not yet taken up."""
        return len(self._waiting)

    async def ask(self, question: Question) -> Answer:
        """The answer to a question; raises `Overloaded` at once if too many wait already."""
        if len(self._waiting) >= self.most_waiting:
            raise Overloaded(
                f"{self.most_waiting} requests wait already, which is the limit; "
                f"ask again in {RETRY_SECONDS} s"
            )
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((question, answer))
        if self._working is None or self._working.done():
            self._working = asyncio.create_task(self._work())
        return await answer

    async def close(self) -> None:
        """Answer all that wait, then end the thread."""
        if self._working is not None:
            await self._working
        await asyncio.to_thread(self._thread.shutdown)

    async def _work(self) -> None:
        """Answer batch after batch until nobody waits."""
        loop = asyncio.get_running_loop()
        while self._waiting:
            size = min(self.most_together, len(self._waiting))
            batch = [self._waiting.popleft() for _ in range(size)]
            batch = [(question, answer) for question, answer in batch if not answer.done()]
            questions = [question for question, _ in batch]
            try:
                answers = await loop.run_in_executor(self._thread, self.answer_all, questions)
                settled = list(zip(batch, answers, strict=True))
            except Exception as problem:
                settled = [(asked, problem) for asked in batch]
            for (_, future), answer in settled:
                _settle(future, answer)


def _settle(future: "asyncio.Future[Answer]", answer: Answer | Exception) -> None:
    if future.done():  # whoever asked has gone
        return
    if isinstance(answer, Exception):
        future.set_exception(answer)
    else:
        future.set_result(answer)
