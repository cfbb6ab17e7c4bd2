"""The server: a socket, the limit of open files, and a clean end.

Without a free file for a new connection, asyncio waits a second before the next `accept`, but
first tries as often as connections may queue (2,048 times in uvicorn, in Python 3.11), each time
with a traceback: 4,000 of them a second, and a busy core. `ListeningSocket` and `AcceptErrors`
prevent that.
"""

import asyncio
import errno
import logging
import resource
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any, Final

import uvicorn

from castpoi.core.errors import BadInput
from castpoi.serving.app import create_app
from castpoi.serving.logs import log_event
from castpoi.serving.service import Service

_KEPT_FREE: Final = 128  # files for the store, the run and the pages
_PAUSE_SECONDS: Final = 0.5  # shorter than the second after which asyncio tries again
_SECONDS_BETWEEN_LINES: Final = 60.0
_LINGER_SECONDS: Final = 1.0
_EXHAUSTED: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class ListeningSocket(socket.socket):
    """A socket that accepts nothing for half a second after it ran out of files.

    If it `takes_turns`, it reports no second connection right after one: asyncio would accept all
    that wait, and other processes with the same socket none.
    """

    _paused_until = 0.0
    takes_turns = False
    _has_accepted = False

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept a connection; BlockingIOError during the pause, as if there were none."""
        self._has_accepted = self.takes_turns and not self._has_accepted
        if monotonic() < self._paused_until or (self.takes_turns and not self._has_accepted):
            raise BlockingIOError
        try:
            return super().accept()
        except OSError as problem:
            if problem.errno in _EXHAUSTED:
                self._paused_until = monotonic() + _PAUSE_SECONDS
            raise


class AcceptErrors:
    """Exception handler of an event loop that logs failures of `accept` once a minute."""

    def __init__(self) -> None:
        self._next_line = 0.0

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log a connection that could not be accepted; leave other errors to the loop."""
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


def max_connections() -> int | None:
    """The number of connections within the limit of open files; None without a limit."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return None
    return max(limit - _KEPT_FREE, limit // 2)


def listening_socket(host: str, port: int) -> socket.socket:
    """A socket bound to the host and port; port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends an answer at once only if the protocol is given; else it waits some 40 ms
    listening = ListeningSocket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host.strip("[]"), port))
    except OSError as problem:
        listening.close()
        raise BadInput(
            f"the server cannot listen on {host}:{port}: {problem.strerror}; choose another "
            "--host or --port"
        ) from problem
    return listening


def address_of(listening: socket.socket) -> str:
    """The address of a socket, such as http://127.0.0.1:8080."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def serve_until_stopped(
    service: Service,
    listening: socket.socket,
    *,
    on_ready: Callable[[], None],
    on_drained: Callable[[], None] = lambda: None,
) -> None:
    """Answer requests until SIGTERM or SIGINT, then finish what has begun.

    Calls `on_drained` when it accepts no more requests. Raises the error of the run if it cannot be
    loaded.
    """
    failures: list[Exception] = []

    def give_up(problem: Exception) -> None:
        failures.append(problem)
        server.should_exit = True

    server = server_of(service, on_ready=on_ready, on_failure=give_up, on_drained=on_drained)
    with _stop_signals_ignored():
        server.run(sockets=[listening])
    if failures:
        raise failures[0]


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, on_drained: Callable[[], None]) -> None:
        super().__init__(config)
        self.on_drained = on_drained

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().set_exception_handler(AcceptErrors())
        await super().startup(sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        # a request may be on its way through a connection that seems idle; its answer closes it
        end = monotonic() + _LINGER_SECONDS
        while self.server_state.connections and monotonic() < end and not self.force_exit:
            await asyncio.sleep(0.02)
        # runs at the first wait, when the idle connections are closed
        asyncio.get_running_loop().call_soon(self.on_drained)
        await super().shutdown(sockets)


def server_of(
    service: Service,
    *,
    on_ready: Callable[[], None] = lambda: None,
    on_failure: Callable[[Exception], None] = lambda _: None,
    on_drained: Callable[[], None] = lambda: None,
) -> uvicorn.Server:
    """The server of a service; it closes its connections while it stops."""
    app = create_app(
        service, on_ready=on_ready, on_failure=on_failure, is_stopping=lambda: server.should_exit
    )
    server = _Server(
        uvicorn.Config(
            app,
            log_config=None,
            access_log=False,  # it has paths with user ids; our log has route templates
            server_header=False,
            lifespan="on",
            ws="none",
            proxy_headers=False,
            limit_concurrency=max_connections(),
            timeout_graceful_shutdown=service.settings.grace_seconds,
        ),
        on_drained,
    )
    return server


@contextmanager
def _stop_signals_ignored() -> Iterator[None]:
    """Ignore the stop signals, which uvicorn raises again after it has stopped."""
    signs = (signal.SIGINT, signal.SIGTERM)
    former = {sign: signal.signal(sign, lambda *_: None) for sign in signs}
    try:
        yield
    finally:
        for sign, handler in former.items():
            signal.signal(sign, handler)
