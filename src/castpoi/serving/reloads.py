"""Loads that share: a call during a load waits for one more, which serves all such calls."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class SharedReload(Generic[Value]):
    """Loads again at a call, one load at a time.

    Calls during a load share the next one: the current one may have read the folder before it was
    changed.
    """

    def __init__(self, load: Callable[[], Awaitable[Value]]) -> None:
        self._load = load
        self.turn = asyncio.Lock()  # held during a load
        self._next: asyncio.Task[Value] | None = None  # waits until the current load is done

    async def __call__(self) -> Value:
        """The outcome of a load that begins after this call."""
        if self._next is None:
            self._next = asyncio.create_task(self._load_in_turn())
        return await asyncio.shield(self._next)  # a client that leaves must not cancel the others

    async def _load_in_turn(self) -> Value:
        async with self.turn:
            self._next = None
            return await self._load()
