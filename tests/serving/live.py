"""A service that listens on a socket, in a thread of the test, and its client."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from castpoi.core.errors import ModelNotReady
from castpoi.core.provenance import Stopwatch
from castpoi.recommend.recommendation import Recommendations
from castpoi.recommend.recommender import Recommender
from castpoi.recommend.resolve import ResolvedRequest
from castpoi.serving.server import address_of, listening_socket, server_of
from castpoi.serving.service import Service
from castpoi.serving.settings import ServiceSettings
from castpoi.serving.store import VisitStore

PATIENCE_SECONDS = 30.0

MORNING = [
    {"place": "cafe", "at": "2012-04-02T08:00:00-04:00"},
    {"place": "office", "at": "2012-04-02T09:00:00-04:00"},
]


class GatedRecommender(Recommender):
    """A recommender that waits until its gate is open."""

    def __init__(self, recommender: Recommender) -> None:
        super().__init__(recommender.run, recommender.places)
        self.gate = threading.Event()
        self.begun = threading.Event()
        self.batches: list[int] = []

    def answer(
        self, requests: Sequence[ResolvedRequest], *, work: Stopwatch | None = None
    ) -> list[Recommendations]:
        self.batches.append(len(requests))
        self.begun.set()
        assert self.gate.wait(PATIENCE_SECONDS)
        return super().answer(requests, work=work)


class Live:
    """A listening service and its client."""

    def __init__(self, service: Service, server: uvicorn.Server, address: str) -> None:
        self.service = service
        self.server = server
        self.address = address
        self.client = httpx.Client(base_url=address, timeout=PATIENCE_SECONDS)

    def ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        return self.client.request(method, path, **options)

    def recommend(self, **body: Any) -> dict[str, Any]:
        answer = self.ask("POST", "/v1/recommend", json=body)
        assert answer.status_code == 200, answer.text
        content: dict[str, Any] = answer.json()
        return content

    def post(self, **body: Any) -> dict[str, Any]:
        answer = self.ask("POST", "/v1/visits", json=body)
        assert answer.status_code == 200, answer.text
        content: dict[str, Any] = answer.json()
        return content


def service_of(
    recommender: Recommender, folder: Path, settings: ServiceSettings | None = None
) -> Service:
    """A service of a recommender, with a store of its own."""
    return Service(
        settings=settings or ServiceSettings(port=0),
        load=lambda: recommender,
        store=VisitStore(f"sqlite:///{folder}/visits.sqlite"),
    )


@contextmanager
def living(service: Service, *, until_ready: bool = True) -> Iterator[Live]:
    """Let a service listen on a free port while the block runs."""
    with listening_socket("127.0.0.1", 0) as listening:
        server = server_of(service)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        live = Live(service, server, address_of(listening))
        try:
            wait_until(lambda: server.started)  # it listens: before, connections are refused
            if until_ready:
                wait_until(lambda: _is_ready(service))
            with live.client:
                yield live
        finally:
            server.should_exit = True
            thread.join(PATIENCE_SECONDS)
            assert not thread.is_alive()


def _is_ready(service: Service) -> bool:
    try:
        _ = service.recommender
    except ModelNotReady:
        return False
    return True


def wait_until(happened: Any, seconds: float = PATIENCE_SECONDS) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.005)
