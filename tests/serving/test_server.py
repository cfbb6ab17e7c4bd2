"""The server: its socket, the limit of open files, and the lines of its log."""

import asyncio
import errno
import resource
import socket
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from castpoi.core.errors import BadInput
from castpoi.recommend.recommender import Recommender
from castpoi.recommend.request import moment_of
from castpoi.serving import logs
from castpoi.serving.server import AcceptErrors, max_connections
from tests.serving.live import living, service_of, wait_until


@pytest.mark.parametrize(
    ("limit", "connections"),
    [(1024, 896), (64, 32), (20_000, 19_872), (resource.RLIM_INFINITY, None)],
)
def test_connections_leave_some_files_to_the_service(
    monkeypatch: pytest.MonkeyPatch, limit: int, connections: int | None
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, limit))
    assert max_connections() == connections


def test_requests_above_the_limit_of_connections_are_rejected(
    recommender: Recommender, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (6, 6))
    with living(service_of(recommender, tmp_path)) as live, ExitStack() as idle:
        assert live.ask("GET", "/healthz").status_code == 200
        port = int(live.address.rsplit(":", 1)[1])
        for _ in range(2):
            idle.enter_context(socket.create_connection(("127.0.0.1", port)))
        wait_until(lambda: len(live.server.server_state.connections) == 3)
        rejected = live.ask("GET", "/healthz")
        assert (rejected.status_code, rejected.headers["connection"]) == (503, "close")
        idle.close()
        wait_until(lambda: not live.server.server_state.connections)
        assert live.ask("GET", "/healthz").status_code == 200


def test_connections_that_cannot_be_accepted_are_one_line_of_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    handle = AcceptErrors()
    loop = asyncio.new_event_loop()
    too_many = OSError(errno.EMFILE, "Too many open files")
    for _ in range(2000):
        handle(loop, {"message": "socket.accept() out of system resource", "exception": too_many})
    (line,) = caplog.records
    assert "connections not accepted reason='Too many open files; raise the" in line.message
    handle(loop, {"message": "another error", "exception": ValueError("of another kind")})
    assert caplog.records[1].message.startswith("another error")
    loop.close()


def test_without_free_files_the_service_logs_one_line_and_accepts_connections_later(
    recommender: Recommender,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    accept, attempts = socket.socket.accept, list[float]()

    def exhausted(_: socket.socket) -> tuple[socket.socket, Any]:
        attempts.append(time.monotonic())
        raise OSError(errno.EMFILE, "Too many open files")

    with living(service_of(recommender, tmp_path)) as live:
        monkeypatch.setattr(socket.socket, "accept", exhausted)
        with socket.create_connection(("127.0.0.1", int(live.address.rsplit(":", 1)[1]))):
            wait_until(lambda: len(attempts) >= 2 and attempts[-1] - attempts[0] > 0.5)
        monkeypatch.setattr(socket.socket, "accept", accept)
        assert live.ask("GET", "/healthz").status_code == 200
    assert len(attempts) < 5
    assert caplog.text.count("connections not accepted") == 1
    assert "Traceback" not in caplog.text


def test_the_log_of_a_failure_has_lines_of_the_package_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """An image may install everything below /opt/castpoi."""
    library = "/opt/castpoi/lib/python3.11/site-packages/library.py"
    names: dict[str, Any] = {"moment_of": moment_of}
    exec(compile("def call():\n    moment_of('the-secret', what='at')", library, "exec"), names)
    with pytest.raises(BadInput) as error:
        names["call"]()
    logs.log_failure("request failed", error.value)
    assert "kind=BadInput lines=request.py:" in caplog.text
    assert "library.py" not in caplog.text
    assert Path(__file__).name not in caplog.text
    assert "secret" not in caplog.text
