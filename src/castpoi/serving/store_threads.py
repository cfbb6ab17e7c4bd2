"""Threads for calls to the store, apart from those of the other routes.

A post may wait until a SQLite file is rewritten, and any call for a PostgreSQL server that does not
answer. Places, pages and the model wait for neither.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

_READERS: Final = 8
_WRITERS: Final = 16
"""With the readers and the thread of histories, no more than the connections of the pool."""

_Value = TypeVar("_Value")


class StoreThreads:
    """Calls the store from threads of its own; those that write hold up none that read."""

    def __init__(self) -> None:
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="store-read")
        self._writers = ThreadPoolExecutor(_WRITERS, thread_name_prefix="store-write")

    async def read(self, work: Callable[[], _Value]) -> _Value:
        """The value of a call that only reads."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, work)

    async def write(self, work: Callable[[], _Value]) -> _Value:
        """The value of a call that may change the store."""
        return await asyncio.get_running_loop().run_in_executor(self._writers, work)

    def close(self) -> None:
        """Finish all calls that were begun, then end the threads."""
        self._readers.shutdown()
        self._writers.shutdown()
