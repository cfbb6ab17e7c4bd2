"""The limit of open files: how many connections fit below it, and what happens at it.

Where no file is left for a new connection, asyncio waits a second before it accepts the next, but
first tries as often as connections may queue (2,048 times in uvicorn, in Python 3.11), each time
with a traceback: 4,000 of them a second, and a busy core.
"""

import asyncio
import errno
import logging
import resource
import socket
from time import monotonic
from typing import Any, Final

from castpoi.serving.logs import log_event

_KEPT_FREE: Final = 128
"""Files for the store, the run and the pages."""
_PAUSE_SECONDS: Final = 0.5
"""Shorter than the second after which asyncio tries again."""
_SECONDS_BETWEEN_LINES: Final = 60.0
_EXHAUSTED: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


def most_connections() -> int | None:
    """How many connections fit below the limit of open files; None if there is no limit."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return None
    return max(limit - _KEPT_FREE, limit // 2)


class ListeningSocket(socket.socket):
    """A socket that after a failure for want of files accepts nothing for half a second."""

    _paused_until = 0.0

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept a connection; BlockingIOError during the pause, as if there were none."""
        if monotonic() < self._paused_until:
            raise BlockingIOError
        try:
            return super().accept()
        except OSError as problem:
            if problem.errno in _EXHAUSTED:
                self._paused_until = monotonic() + _PAUSE_SECONDS
            raise


class AcceptErrors:
    """Exception handler of an event loop that logs refused connections at most once a minute."""

    def __init__(self) -> None:
        self._next_line = 0.0

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log a connection that could not be accepted; leave every other error to the loop."""
        problem = context.get("exception")
        if not isinstance(problem, OSError) or problem.errno not in _EXHAUSTED:
            loop.default_exception_handler(context)
        elif (now := monotonic()) >= self._next_line:
            self._next_line = now + _SECONDS_BETWEEN_LINES
            log_event(
                "connections not accepted",
                level=logging.ERROR,
                reason=f"'{problem.strerror}; raise the limit of open files (ulimit -n)'",
            )
