"""Two services on one PostgreSQL database, and clients that reach them through a proxy."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import castpoi
from tests.cli.test_serve_journey import KEY, client_of, serving
from tests.serving.live import wait_until

AT = "2012-04-09T08:00:00-04:00"


@contextmanager
def proxy_of(addresses: list[str], statuses: list[int]) -> Iterator[str]:
    """A proxy that asks the services in turn; it answers 502 if a service ends amid a request."""
    turn = count()

    class Proxy(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, answer = 502, b'{"error": "no service"}'
            address = urlsplit(addresses[next(turn) % len(addresses)])
            upstream = HTTPConnection(address.hostname or "", address.port, timeout=60)
            try:
                upstream.request(self.command, self.path, body, dict(self.headers))
                response = upstream.getresponse()
                status, answer = response.status, response.read()
            except (OSError, HTTPException):
                pass
            statuses.append(status)
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def replicas(
    run_folder: Path, empty_postgres: str, tmp_path: Path
) -> Iterator[tuple[tuple[Any, Any], tuple[Any, Any]]]:
    words = ("--store", empty_postgres, "--no-import-city")
    with (
        serving(run_folder, tmp_path / "a.log", *words) as first,
        serving(run_folder, tmp_path / "b.log", *words) as second,
    ):
        yield first, second


def test_replicas_agree_as_soon_as_a_write_is_acknowledged(replicas: Any) -> None:
    (_, one), (_, other) = replicas
    with client_of(one) as left, client_of(other) as right:
        for number in range(20):
            writer, reader = (left, right) if number % 2 else (right, left)
            visit = {"user": f"u{number}", "place": "cafe", "at": AT, "key": "k"}
            assert writer.post("/v1/visits", json=visit).json()["stored"] == 1
            assert reader.post("/v1/visits", json=visit).json()["repeated"] == 1
            other_visit = visit | {"place": "park"}
            assert reader.post("/v1/visits", json=other_visit).status_code == 409
            question = {"user": f"u{number}", "k": 3}
            answers = [each.post("/v1/recommend", json=question).json() for each in (left, right)]
            assert answers[0]["recommendations"] == answers[1]["recommendations"]
            assert answers[0]["user_known"]
            assert writer.delete(f"/v1/users/u{number}").json() == {"erased": 1}
            assert reader.get(f"/v1/users/u{number}/visits").json()["visits"] == []
            assert not reader.post("/v1/recommend", json=question).json()["user_known"]


def test_no_acknowledged_visit_is_lost_when_a_replica_is_killed_under_load(replicas: Any) -> None:
    (killed, one), (_, other) = replicas
    statuses: list[int] = []
    acknowledged: list[str] = []
    with proxy_of([one["address"], other["address"]], statuses) as address:

        def post(number: int) -> None:
            client = castpoi.Client(address, KEY, retries=6)
            client.add_visit("ann", f"p{number}", AT)
            acknowledged.append(f"p{number}")
            assert client.recommend("ann", k=1)

        with ThreadPoolExecutor(4) as clients:
            posts = [clients.submit(post, number) for number in range(120)]
            wait_until(lambda: len(acknowledged) > 30)
            killed.kill()
            for each in posts:
                each.result()  # no client saw an error
    with client_of(other) as client:
        page = client.get("/v1/users/ann/visits", params={"limit": 1000}).json()
    assert sorted(visit["place"] for visit in page["visits"]) == sorted(acknowledged)
    assert len(acknowledged) == 120
    assert set(statuses) == {200, 502}
