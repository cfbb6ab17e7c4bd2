"""The store on PostgreSQL: several services on one server, and a server that is stopped.

A stopped server is frozen: its sockets stay open without answers.
"""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa

from castpoi.core.errors import BrokenStore
from castpoi.recommend.recommender import Recommender
from castpoi.serving.store import VisitStore
from tests.messages import refused
from tests.serving.live import MORNING, PATIENCE_SECONDS, Live, living, service_of, wait_until
from tests.serving.postgres import frozen
from tests.serving.stores import places_of, visit

AT = "2012-04-09T08:00:00-04:00"


@pytest.fixture
def store(empty_postgres: str) -> Iterator[VisitStore]:
    store = VisitStore(empty_postgres)
    yield store
    store.close()


def seconds_until_refused(work: Callable[[], object]) -> float:
    began = time.monotonic()
    with refused(BrokenStore):
        work()
    return time.monotonic() - began


def test_a_frozen_server_fails_fast_and_is_used_again_later(
    empty_postgres: str, store: VisitStore
) -> None:
    store.add([visit("ann", "cafe", 1)])
    with frozen(empty_postgres):
        for work in (store.check, lambda: store.add([visit("ann", "park", 2)])):
            assert seconds_until_refused(work) < 2
        assert seconds_until_refused(lambda: store.erase("ann")) < 2
        time.sleep(1.1)  # it is tried again
        assert seconds_until_refused(store.check) > 1
        assert seconds_until_refused(store.check) < 0.1  # others need not wait as well
    wait_until(lambda: _answers(store))
    assert places_of(store, "ann") == ["cafe"]


def _answers(store: VisitStore) -> bool:
    try:
        store.check()
    except BrokenStore:
        return False
    return True


def test_a_visit_that_waits_for_a_lock_does_not_block_others(
    store: VisitStore,
) -> None:
    store.add([visit("ann", "cafe", 1)])
    with store._engine.begin() as other:
        other.execute(sa.text("SELECT * FROM users FOR UPDATE"))
        assert seconds_until_refused(lambda: store.add([visit("ann", "park", 2)])) < 2
        store.add([visit("bob", "park", 2)])
    assert places_of(store, "ann") == ["cafe"]


def test_a_frozen_server_blocks_only_requests_that_need_it(
    empty_postgres: str, recommender: Recommender, tmp_path: Path
) -> None:
    service = service_of(recommender, tmp_path)
    service.store.close()
    service.store = VisitStore(empty_postgres)
    requests: list[tuple[str, str, dict[str, object]]] = [
        ("GET", "/readyz", {}),
        ("GET", "/v1/users", {}),
        ("POST", "/v1/recommend", {"json": {"user": "ann"}}),
        ("POST", "/v1/visits", {"json": {"user": "ann", "place": "park", "at": AT}}),
    ]
    with ThreadPoolExecutor(64) as clients, living(service) as live:
        live.post(user="ann", place="cafe", at=AT)
        with frozen(empty_postgres):
            crowd = [clients.submit(_timed, live, *request) for request in requests * 15]
            time.sleep(0.2)
            for _ in range(3):
                status, seconds = _timed(
                    live, "POST", "/v1/recommend", {"json": {"history": MORNING}}
                )
                assert (status, seconds < 1) == (200, True)
                assert _timed(live, "GET", "/v1/places", {})[1] < 1
            answers = [request.result() for request in crowd]
        wait_until(lambda: live.ask("GET", "/readyz").status_code == 200)
        assert live.recommend(user="ann")["recommendations"]
    assert {status for status, _ in answers} == {503}
    assert max(seconds for _, seconds in answers) < 4  # 1.9 s on two busy cores


def _timed(live: Live, method: str, path: str, body: dict[str, object]) -> tuple[int, float]:
    began = time.monotonic()
    answer = live.ask(method, path, **body)
    return answer.status_code, time.monotonic() - began


def test_two_services_may_start_at_once_on_an_empty_database(empty_postgres: str) -> None:
    """Without a lock, both create the tables: 13 of 15 times one of two failed."""
    engine = sa.create_engine(empty_postgres.replace("postgresql:", "postgresql+psycopg:"))
    for _ in range(5):
        with engine.begin() as connection:
            connection.execute(sa.text("DROP TABLE IF EXISTS about, visits, users"))
        both = threading.Barrier(2)

        def start(_: int, both: threading.Barrier = both) -> None:
            both.wait(PATIENCE_SECONDS)
            VisitStore(empty_postgres).close()

        with ThreadPoolExecutor(2) as services:
            assert list(services.map(start, range(2))) == [None, None]
    engine.dispose()
