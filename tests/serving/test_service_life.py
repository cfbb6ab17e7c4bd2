"""The service from its start to its end: loading, load, a new run, a broken store."""

import asyncio
import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from castpoi.core.errors import BrokenFolder, BrokenStore
from castpoi.recommend.recommender import Recommender, load
from castpoi.recommend.request import Request
from castpoi.serving.reloads import SharedReload
from castpoi.serving.schema import ModelCard
from castpoi.serving.server import listening_socket
from castpoi.serving.service import CityImport
from castpoi.serving.settings import Limits, ServiceSettings
from tests.serving.live import (
    MORNING,
    PATIENCE_SECONDS,
    GatedRecommender,
    living,
    service_of,
    wait_until,
)
from tests.serving.small_run import small_run, spoil_weights

AT = "2012-04-09T08:00:00-04:00"


def with_slow_load(recommender: Recommender) -> tuple[Callable[[], Recommender], threading.Event]:
    """A run whose loading waits for the event."""
    may_load = threading.Event()

    def slow() -> Recommender:
        assert may_load.wait(PATIENCE_SECONDS)
        return recommender

    return slow, may_load


def test_the_service_is_alive_but_not_ready_while_it_loads(
    recommender: Recommender, tmp_path: Path
) -> None:
    service = service_of(recommender, tmp_path)
    service.load, may_load = with_slow_load(recommender)
    with living(service, until_ready=False) as live:
        assert live.ask("GET", "/healthz").json() == {"status": "alive"}
        for method, path in (("GET", "/readyz"), ("POST", "/v1/recommend")):
            answer = live.ask(method, path, **({"json": {"history": []}} if "v1" in path else {}))
            assert answer.status_code == 503
            assert answer.headers["retry-after"] == "1"
            assert "still loading its run" in answer.json()["error"]
        may_load.set()
        wait_until(lambda: live.ask("GET", "/readyz").status_code == 200)


def test_an_erasure_before_the_run_is_loaded_is_rejected(
    recommender: Recommender, tmp_path: Path
) -> None:
    service = service_of(recommender, tmp_path)
    service.load, may_load = with_slow_load(recommender)
    service.city = CityImport(folder=recommender.run.city, report=lambda _: None)
    with living(service, until_ready=False) as live:
        for method, path in (("DELETE", "/v1/users/nobody"), ("GET", "/v1/users")):
            answer = live.ask(method, path)
            assert answer.status_code == 503
            assert "still loading its run" in answer.json()["error"]
        may_load.set()
        wait_until(lambda: live.ask("GET", "/readyz").status_code == 200)
        assert live.ask("GET", "/v1/users").json()["users"]


def test_a_busy_model_blocks_no_other_request_and_shutdown_finishes_all(
    recommender: Recommender, tmp_path: Path
) -> None:
    slow = GatedRecommender(recommender)
    settings = ServiceSettings(limits=Limits(waiting=3, together=2))
    with (
        ThreadPoolExecutor(8) as clients,
        living(service_of(slow, tmp_path, settings)) as live,
    ):
        address = f"{live.address}/v1/recommend"

        def ask() -> httpx.Response:
            return httpx.post(address, json={"history": MORNING}, timeout=PATIENCE_SECONDS)

        first = clients.submit(ask)
        assert slow.begun.wait(PATIENCE_SECONDS)
        waiting = [clients.submit(ask) for _ in range(3)]
        wait_until(lambda: live.service.batcher.waiting == 3)
        # the model is blocked; everything else works
        assert live.ask("GET", "/healthz").status_code == 200
        assert live.post(user="ann", place="cafe", at=AT)["stored"] == 1
        assert "castpoi_requests_waiting 3.0" in live.ask("GET", "/metrics").text
        rejected = live.ask("POST", "/v1/recommend", json={"history": MORNING})
        assert rejected.status_code == 503
        assert rejected.headers["retry-after"] == "1"
        live.server.should_exit = True  # as SIGTERM does
        wait_until(lambda: not _accepts(live.address))
        slow.gate.set()
        answers = [each.result() for each in (first, *waiting)]
    assert [answer.status_code for answer in answers] == [200] * 4
    assert [answer.headers.get("connection") for answer in answers] == ["close"] * 4
    assert "connection" not in rejected.headers
    assert slow.batches == [1, 2, 1]


def _accepts(address: str) -> bool:
    try:
        httpx.get(f"{address}/healthz", timeout=PATIENCE_SECONDS)
    except httpx.TransportError:
        return False
    return True


def test_a_reload_drops_no_request(recommender: Recommender, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = load(small_run(tmp_path / "other", reader_layers=1))
    slow = GatedRecommender(recommender)
    coming: list[Recommender | BrokenFolder] = [slow, other, BrokenFolder("the run is damaged")]

    def next_run() -> Recommender:
        run = coming.pop(0)
        if isinstance(run, BrokenFolder):
            raise run
        return run

    service = service_of(recommender, tmp_path)
    service.load = next_run
    with ThreadPoolExecutor(1) as clients, living(service) as live:
        former = clients.submit(live.recommend, history=MORNING)
        assert slow.begun.wait(PATIENCE_SECONDS)
        card = live.ask("POST", "/v1/model/reload").json()
        assert card["model"] == other.model != slow.model
        slow.gate.set()
        assert former.result()["model"] == slow.model
        assert live.recommend(history=MORNING)["model"] == other.model
        failed = live.ask("POST", "/v1/model/reload")
        assert (failed.status_code, failed.json()["error"]) == (409, "the run is damaged")
        assert live.recommend(history=MORNING)["model"] == other.model


def test_a_reload_of_a_run_with_nan_scores_is_a_409_and_changes_nothing(
    tmp_path: Path,
) -> None:
    run = small_run(tmp_path)
    service = service_of(load(run), tmp_path)
    service.load = lambda: load(run)
    with living(service) as live:
        before = live.recommend(history=MORNING)
        spoil_weights(run)
        refused = live.ask("POST", "/v1/model/reload")
        assert refused.status_code == 409
        assert "cannot be served: the model of this run computes scores that" in refused.text
        assert live.recommend(history=MORNING)["recommendations"] == before["recommendations"]


def test_reloads_during_a_load_share_the_next_one_and_block_nothing(
    recommender: Recommender, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads: list[int] = []
    begun: list[int] = []
    may_load = threading.Event()

    def slow() -> Recommender:
        loads.append(len(loads))
        assert len(loads) == 1 or may_load.wait(PATIENCE_SECONDS)
        return recommender

    service = service_of(recommender, tmp_path)
    service.load = slow
    reload = SharedReload.__call__

    async def counted(shared: SharedReload[ModelCard]) -> ModelCard:
        begun.append(len(begun))
        return await reload(shared)

    monkeypatch.setattr(SharedReload, "__call__", counted)
    with ThreadPoolExecutor(40) as clients, living(service) as live:

        def ask() -> int:
            address = f"{live.address}/v1/model/reload"
            return httpx.post(address, timeout=PATIENCE_SECONDS).status_code

        first = clients.submit(ask)
        wait_until(lambda: len(loads) == 2)
        others = [clients.submit(ask) for _ in range(39)]
        wait_until(lambda: len(begun) == 40)
        ready = httpx.get(f"{live.address}/readyz", timeout=PATIENCE_SECONDS / 3)
        assert ready.status_code == 200
        may_load.set()
        assert {status.result() for status in (first, *others)} == {200}
    assert loads == [0, 1, 2]


def test_a_cancelled_reload_does_not_cancel_others_that_share_it(
    recommender: Recommender, tmp_path: Path
) -> None:
    service = service_of(recommender, tmp_path)

    async def ask() -> None:
        await service.start()
        gone, stays = (asyncio.create_task(service.reload()) for _ in range(2))
        await asyncio.sleep(0)
        gone.cancel()
        await stays
        await service.close()

    asyncio.run(ask())


def test_a_failed_shared_reload_is_an_error_for_all_and_the_next_one_works(
    recommender: Recommender, tmp_path: Path
) -> None:
    def broken() -> Recommender:
        raise BrokenFolder("damaged")

    service = service_of(recommender, tmp_path)

    async def ask() -> list[object]:
        await service.start()
        service.load = broken
        outcomes = await asyncio.gather(
            *(service.reload() for _ in range(3)), return_exceptions=True
        )
        service.load = lambda: recommender
        await service.reload()
        await service.close()
        return list(outcomes)

    outcomes = asyncio.run(ask())
    assert [type(outcome) for outcome in outcomes] == [BrokenFolder] * 3


def test_a_broken_store_fails_only_requests_that_need_it_and_is_logged(
    recommender: Recommender, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    service = service_of(recommender, tmp_path)
    with living(service) as live:
        with service.store._engine.begin() as connection:
            connection.exec_driver_sql("ALTER TABLE users RENAME TO elsewhere")
        answer = live.ask("POST", "/v1/recommend", json={"user": "ann"})
        assert answer.status_code == 503
        assert "the visit store failed" in answer.json()["error"]
        assert live.recommend(history=MORNING)["recommendations"]
        visit = {"user": "ann", "place": "cafe", "at": AT}
        assert live.ask("POST", "/v1/visits", json=visit).status_code == 503
    assert caplog.text.count("store failed kind=OperationalError lines=") == 2
    assert "ann" not in caplog.text


@contextmanager
def no_file_grows_beyond(size: int) -> Iterator[None]:
    """As on a disk that is full."""
    former = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, former[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, former)


def test_a_service_on_a_full_disk_is_not_ready_until_there_is_space(
    recommender: Recommender, tmp_path: Path
) -> None:
    visits = [{"user": "ann", "place": f"place {n}", "at": AT} for n in range(200)]
    with living(service_of(recommender, tmp_path)) as live:
        live.post(user="ann", place="cafe", at=AT)
        with no_file_grows_beyond((tmp_path / "visits.sqlite-wal").stat().st_size):
            assert live.ask("POST", "/v1/visits", json={"visits": visits}).status_code == 503
            answer = live.ask("GET", "/readyz")
            assert answer.status_code == 503
            assert "check its disk space" in answer.json()["error"]
            assert live.recommend(user="ann")["recommendations"]
        assert live.ask("GET", "/readyz").status_code == 200  # without a post that would find out
        assert live.post(visits=visits)["stored"] == 200


def test_waiting_posts_block_nothing_else(recommender: Recommender, tmp_path: Path) -> None:
    """An erasure rewrites the file of SQLite, and posts wait for it."""
    service = service_of(recommender, tmp_path)
    visit = {"user": "ann", "place": "cafe", "at": AT}
    with ThreadPoolExecutor(60) as clients, living(service) as live:
        with service.store._turn:
            posts = [clients.submit(live.post, **visit) for _ in range(60)]
            time.sleep(0.2)
            for path in ("/v1/places", "/v1/users", "/v1/users/ann/visits", "/readyz", "/"):
                answer = live.ask("GET", path, timeout=PATIENCE_SECONDS / 3)
                assert answer.status_code == 200
            assert not any(post.done() for post in posts)
        assert sum(post.result()["stored"] for post in posts) == 1


def test_a_failed_read_of_many_requests_is_one_line_of_the_log(
    recommender: Recommender, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    service = service_of(recommender, tmp_path)
    requests = [Request(user=f"user {number}") for number in range(20)]

    async def ask() -> list[object]:
        await service.start()
        with service.store._engine.begin() as connection:
            connection.exec_driver_sql("ALTER TABLE users RENAME TO elsewhere")
        outcomes = await asyncio.gather(*map(service.recommend, requests), return_exceptions=True)
        await service.close()
        return list(outcomes)

    assert {type(outcome) for outcome in asyncio.run(ask())} == {BrokenStore}
    lines = [record.message for record in caplog.records if record.levelname == "ERROR"]
    assert len(lines) == 1
    assert lines[0].startswith("store failed kind=OperationalError lines=store.py:")


def test_the_listening_socket_has_its_protocol_set() -> None:
    with listening_socket("127.0.0.1", 0) as listening:
        assert listening.proto == socket.IPPROTO_TCP
