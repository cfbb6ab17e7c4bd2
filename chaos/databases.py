"""Two services on one PostgreSQL: frozen, crashed, shared, and empty at the start."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import httpx
import psycopg
import pytest
from tests.cli.test_serve_journey import KEY, client_of, serving
from tests.serving.postgres import frozen, postgres_server

from castpoi.core.errors import BrokenStore
from castpoi.serving.store import VisitStore
from chaos.attack import Arena
from chaos.outcome import Outcome, skipped
from chaos.services import BACK_SECONDS, judged, within
from chaos.storm import Ledger, storm

FIRST_STARTS: Final = 10
ANSWER_SECONDS: Final = 4.0
"""A frozen database must be reported within 2 s; twice that on a busy machine."""
_STORM_SECONDS: Final = 1.5


def attack(arena: Arena) -> Iterator[Outcome]:
    """Run all attacks that need PostgreSQL."""
    try:
        with postgres_server() as url:
            yield first_starts(arena, url)
            with replicas(arena, new_database(url, "shared")) as ready:
                yield share(arena, ready)
                yield crash(arena, url, ready)
                yield freeze(arena, url, ready)
    except pytest.skip.Exception as reason:
        yield skipped("services on PostgreSQL", reason)


def new_database(url: str, name: str) -> str:
    """The URL of a new, empty database on the same server."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return url.rpartition("/")[0] + f"/{name}"


def first_starts(arena: Arena, url: str) -> Outcome:
    """Open two stores at once on an empty database."""
    outcome = Outcome(attack="two services start at once on an empty PostgreSQL database")
    for number in range(FIRST_STARTS):
        empty, gate = new_database(url, f"empty{number}"), threading.Barrier(2)

        def start(_: int, empty: str = empty, gate: threading.Barrier = gate) -> list[str]:
            gate.wait()
            try:
                VisitStore(empty).close()
            except BrokenStore as problem:
                return [str(problem)]
            return []

        with ThreadPoolExecutor(2) as pool:
            outcome.trial([each for found in pool.map(start, range(2)) for each in found])
    arena.report(f"{outcome.attack}: {outcome.lost} of {outcome.tried} lost")
    return outcome


@contextmanager
def replicas(arena: Arena, url: str) -> Iterator[list[Any]]:
    """Two services on one database; yields what each printed when it was ready."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(
                serving(
                    arena.inputs.run, arena.folder / f"replica-{number}.log",
                    "--store", url, "--no-import-city",
                )
            )[1]
            for number in range(2)
        ]  # fmt: skip


def share(arena: Arena, ready: Sequence[Any]) -> Outcome:
    """Post to one service, erase through the other, and read from both."""
    ledger = Ledger("shared")
    with storm(ledger, ready):
        time.sleep(2 * _STORM_SECONDS)
    attack = "two services on one PostgreSQL, erasures through the other: writes read from both"
    return judged(arena, attack, ledger, _seen_by_all(ledger, ready))


def crash(arena: Arena, url: str, ready: Sequence[Any]) -> Outcome:
    """Kill one backend under posts, so that the server restarts from its log."""
    ledger = Ledger("crashed")
    with storm(ledger, ready):
        time.sleep(_STORM_SECONDS)
        os.kill(_backend(url), signal.SIGKILL)
        time.sleep(2 * _STORM_SECONDS)
    attack = "PostgreSQL crashes and restarts under posts: acknowledged writes"
    return judged(arena, attack, ledger, _seen_by_all(ledger, ready))


def _seen_by_all(ledger: Ledger, ready: Sequence[Any]) -> list[str]:
    """Settle the ledger at one service, and compare it with each."""
    problems = []
    for number, each in enumerate(ready):
        with client_of(each) as client:
            if number == 0:
                ledger.settle(client)
            problems += ledger.problems(client)
    return problems


def freeze(arena: Arena, url: str, ready: Sequence[Any]) -> Outcome:
    """Stop all processes of the server with SIGSTOP, and send requests to the services."""
    outcome = Outcome(attack="PostgreSQL frozen: answers within 2 s, and recovery afterwards")
    ledger = Ledger("frozen")
    with storm(ledger, ready):
        time.sleep(_STORM_SECONDS)
    with frozen(url):
        visit = {"user": "late", "place": "cafe", "at": "2024-05-06T12:00:00Z"}
        for each in ready:
            expect = _requests_to(each)
            history = {"history": [{"place": "cafe", "at": "2024-05-06T12:00:00Z"}]}
            outcome.trial(expect("POST", "/v1/recommend", 200, history))
            outcome.trial(expect("POST", "/v1/recommend", 503, {"user": "late"}))
            outcome.trial(expect("POST", "/v1/visits", 503, visit))
            outcome.trial(expect("GET", "/readyz", 503))
            outcome.trial(expect("GET", "/healthz", 200))
    for each in ready:
        with client_of(each) as client:
            is_back = within(BACK_SECONDS, lambda: _status(client, "/readyz") == 200)
            outcome.trial([] if is_back else ["/readyz is not 200 again within 15 s"])
    outcome.trials(ledger.acknowledged, _seen_by_all(ledger, ready))
    arena.report(f"{outcome.attack}: {outcome.tried} tried, {outcome.lost} lost")
    return outcome


def _status(client: httpx.Client, path: str) -> int | None:
    try:
        return client.get(path).status_code
    except httpx.TransportError:
        return None


def _requests_to(ready: Any) -> Callable[..., list[str]]:
    """A client with a short timeout."""

    def expect(method: str, path: str, wanted: int, body: Any = None) -> list[str]:
        words = f"{method} {path} while PostgreSQL is frozen"
        try:
            status = httpx.request(
                method, ready["address"] + path, json=body, timeout=ANSWER_SECONDS,
                headers={"Authorization": f"Bearer {KEY}"},
            ).status_code  # fmt: skip
        except httpx.TransportError as problem:
            return [f"{words}: {type(problem).__name__} after {ANSWER_SECONDS:.0f} s"]
        return [] if status == wanted else [f"{words}: {status}, not {wanted}"]

    return expect


def _backend(url: str) -> int:
    """The process of some connection other than ours."""
    with psycopg.connect(url) as connection:
        row = connection.execute(
            b"SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'"
            b" AND pid <> pg_backend_pid() LIMIT 1"
        ).fetchone()
    assert row is not None
    return int(row[0])
