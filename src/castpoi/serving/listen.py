"""Listening for requests until somebody says stop, and ending well."""

import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from castpoi.core.errors import BadInput
from castpoi.serving.app import create_app
from castpoi.serving.open_files import ListeningSocket, most_connections
from castpoi.serving.service import Service


def listening_socket(host: str, port: int) -> socket.socket:
    """A socket bound to the host and port; port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends an answer at once only where the protocol is told; else it waits some 40 ms
    listening = ListeningSocket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host.strip("[]"), port))
    except OSError as problem:
        listening.close()
        raise BadInput(
            f"{host}:{port} cannot be listened on: {problem.strerror}; choose another --host or "
            "--port"
        ) from problem
    return listening


def address_of(listening: socket.socket) -> str:
    """The address to ask at, such as http://127.0.0.1:8080."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def serve_until_stopped(
    service: Service, listening: socket.socket, *, on_ready: Callable[[], None]
) -> None:
    """Answer requests until SIGTERM or SIGINT; what was begun by then is finished.

    Raises what is wrong with the run if it cannot be loaded.
    """
    failures: list[Exception] = []

    def give_up(problem: Exception) -> None:
        failures.append(problem)
        server.should_exit = True

    server = server_of(service, on_ready=on_ready, on_failure=give_up)
    with _stopping_is_no_error():
        server.run(sockets=[listening])
    if failures:
        raise failures[0]


def server_of(
    service: Service,
    *,
    on_ready: Callable[[], None] | None = None,
    on_failure: Callable[[Exception], None] | None = None,
) -> uvicorn.Server:
    """The server of a service; it closes its connections while it stops."""
    app = create_app(
        service, on_ready=on_ready, on_failure=on_failure, is_stopping=lambda: server.should_exit
    )
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            log_config=None,
            access_log=False,  # it would write paths, and they name users; ours writes templates
            server_header=False,
            lifespan="on",
            ws="none",
            proxy_headers=False,
            limit_concurrency=most_connections(),
            timeout_graceful_shutdown=service.settings.grace_seconds,
        )
    )
    return server


@contextmanager
def _stopping_is_no_error() -> Iterator[None]:
    """Let the server raise its stop signals again, as it does when done, without effect."""

    def heard(*_: Any) -> None:
        pass

    former = {sign: signal.signal(sign, heard) for sign in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for sign, handler in former.items():
            signal.signal(sign, handler)
