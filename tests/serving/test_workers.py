"""`castpoi serve --workers 2`: processes that share the memory of one load, and one port."""

import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.cli.test_serve_journey import client_of, serving
from tests.conftest import CommandLine
from tests.serving import live
from tests.serving.processes import children_of, is_running, memory_mb, workers_of
from tests.serving.small_run import small_run, spoil_weights

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks workers as Linux can")

AT = "2012-04-09T08:00:00-04:00"
_PATIENCE_SECONDS = 120  # a reload starts processes


class Served:
    """A service with two workers."""

    def __init__(self, process: Any, ready: Any, folder: Path) -> None:
        self.process, self.ready, self.folder = process, ready, folder
        self.run = folder / "run"

    def ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        """The answer to a request on a connection of its own."""
        with client_of(self.ready) as client:
            return client.request(method, path, timeout=_PATIENCE_SECONDS, **options)

    def ask_each(self, method: str, path: str, **options: Any) -> list[Any]:
        """The content of the answers of all workers, each asked while the others are stopped."""
        answers = []
        for worker in (found := workers_of(self.process.pid)):
            with stopped([each for each in found if each != worker]):
                answer = self.ask(method, path, **options)
                assert answer.status_code == 200, answer.text
                answers.append(answer.json())
        assert len(answers) == 2
        return answers

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()


def wait_until(happened: Any) -> None:
    live.wait_until(happened, _PATIENCE_SECONDS)


@contextmanager
def stopped(processes: list[int]) -> Iterator[None]:
    """Stop processes while the block runs."""
    for process in processes:
        os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            os.kill(process, signal.SIGCONT)


@contextmanager
def two_workers(folder: Path) -> Iterator[Served]:
    if not (folder / "run").exists():
        small_run(folder)
    words = ("--workers", "2", "--answer-log", str(folder / "answers.jsonl"))
    with serving(folder / "run", folder / "log", *words) as (process, ready):
        yield Served(process, ready, folder)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with two_workers(tmp_path_factory.mktemp("workers")) as service:
        yield service


def test_a_new_store_is_filled_once(served: Served) -> None:
    assert served.ready["visits"] == 14
    assert served.log.count("Imported 14 check-ins") == 1


def test_each_worker_has_a_visit_once_it_is_acknowledged(served: Served) -> None:
    visit = {"user": "ann", "place": "cafe", "at": AT}
    for _ in range(3):
        served.ask("POST", "/v1/visits", json=visit)
    for page in served.ask_each("GET", "/v1/users/ann/visits"):
        assert [each["place"] for each in page["visits"]] == ["cafe"]
    for answer in served.ask_each("POST", "/v1/recommend", json={"user": "ann", "k": 1}):
        assert answer["user_known"]


def test_no_worker_has_an_erased_user(served: Served) -> None:
    served.ask("POST", "/v1/visits", json={"user": "bob", "place": "cafe", "at": AT})
    assert served.ask("DELETE", "/v1/users/bob").json() == {"erased": 1}
    assert [page["visits"] for page in served.ask_each("GET", "/v1/users/bob/visits")] == [[], []]


def test_a_key_identifies_one_visit_for_all_workers(served: Served) -> None:
    visit = {"user": "eve", "place": "cafe", "at": AT, "key": "one"}
    assert [each["stored"] for each in served.ask_each("POST", "/v1/visits", json=visit)] == [1, 0]
    other = visit | {"place": "park"}
    assert {served.ask("POST", "/v1/visits", json=other).status_code for _ in range(8)} == {409}


def test_the_metrics_of_all_workers_are_added(served: Served) -> None:
    def places_answered() -> float:
        line = 'castpoi_requests_total{method="GET",route="/v1/categories",status="200"} '
        page: str = served.ask("GET", "/metrics").text
        return float((page.partition(line)[2] or "0\n").splitlines()[0])

    before = places_answered()
    served.ask_each("GET", "/v1/categories")
    assert places_answered() == before + 2
    assert "castpoi_requests_waiting 0.0" in served.ask("GET", "/metrics").text


def test_the_answers_of_all_workers_are_whole_lines_of_one_log(served: Served) -> None:
    def ask(number: int) -> int:
        return served.ask("POST", "/v1/recommend", json={"user": f"u{number}"}).status_code

    log = served.folder / "answers.jsonl"
    before = len(log.read_text().splitlines())
    with ThreadPoolExecutor(8) as clients:
        assert set(clients.map(ask, range(40))) == {200}
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    assert len(rows) == before + 40
    assert len({row["user"] for row in rows[before:]}) == 40


def test_pages_that_need_tables_are_answered_by_workers(served: Served) -> None:
    for path in ("/v1/city", "/v1/land", "/v1/places?q=cafe", "/v1/popular", "/openapi.json"):
        assert served.ask("GET", path).status_code == 200


def test_workers_share_most_of_their_memory(served: Served) -> None:
    for worker in workers_of(served.process.pid):
        used = memory_mb(worker)
        assert used["Private_Dirty"] + used["Private_Clean"] < 0.4 * used["Rss"]


def test_a_worker_that_is_killed_is_replaced_and_loses_no_acknowledged_visit(
    served: Served,
) -> None:
    acknowledged: list[str] = []

    def post(first: int) -> None:
        for number in range(first, 200, 4):
            visit = {"user": "storm", "place": f"p{number}", "at": AT}
            try:
                answer = served.ask("POST", "/v1/visits", json=visit)
            except httpx.TransportError:
                continue
            assert answer.status_code == 200
            acknowledged.append(f"p{number}")

    threads = [threading.Thread(target=post, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    wait_until(lambda: len(acknowledged) > 20)
    killed, other = workers_of(served.process.pid)
    os.kill(killed, signal.SIGKILL)
    for thread in threads:
        thread.join()
    wait_until(lambda: len(set(workers_of(served.process.pid)) - {killed, other}) == 1)
    page = served.ask("GET", "/v1/users/storm/visits", params={"limit": 1000}).json()
    assert len(acknowledged) > 150
    assert {*acknowledged} <= {visit["place"] for visit in page["visits"]}
    assert "worker ended code=-9" in served.log


def test_a_reload_is_acknowledged_when_no_worker_answers_with_the_former_run(
    castpoi: CommandLine, tmp_path: Path
) -> None:
    with two_workers(tmp_path) as served:
        former = workers_of(served.process.pid)
        words = ("--model", "revisit", "--out", served.run, "--overwrite")
        assert castpoi("train", tmp_path / "city", *words).code == 0
        assert served.ask("GET", "/v1/model").json()["method"] == "castpoi"
        assert served.ask("POST", "/v1/model/reload").json()["method"] == "revisit"
        cards = [served.ask("GET", "/v1/model").json() for _ in range(10)]
        assert {card["method"] for card in cards} == {"revisit"}
        wait_until(lambda: not any(map(is_running, former)))

        (served.run / "model.safetensors").write_bytes(b"not what it was")
        refused = served.ask("POST", "/v1/model/reload")
        assert refused.status_code == 409
        assert "has changed since it was made: model.safetensors" in refused.json()["error"]
        castpoi("train", tmp_path / "city", "--model", "markov", "--out", served.run, "--overwrite")
        served.process.send_signal(signal.SIGHUP)
        wait_until(lambda: served.ask("GET", "/v1/model").json()["method"] == "markov")


def test_a_generation_that_dies_is_replaced(tmp_path: Path) -> None:
    with two_workers(tmp_path) as served:
        (generation,) = (each for each in children_of(served.process.pid) if children_of(each))
        os.kill(generation, signal.SIGKILL)

        def has_new_workers() -> bool:
            found = [each for each in children_of(served.process.pid) if children_of(each)]
            return len(found) == 1 and found[0] != generation

        wait_until(has_new_workers)
        wait_until(lambda: len(workers_of(served.process.pid)) == 2)
        assert served.ask("GET", "/readyz").status_code == 200


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGKILL])
def test_all_workers_end_with_their_supervisor(tmp_path: Path, sign: signal.Signals) -> None:
    with two_workers(tmp_path) as served:
        children = children_of(served.process.pid)
        running = [*children, *workers_of(served.process.pid)]
        served.process.send_signal(sign)
        assert served.process.wait(_PATIENCE_SECONDS) == (0 if sign == signal.SIGTERM else -sign)
        wait_until(lambda: not any(map(is_running, running)))
        with pytest.raises(httpx.ConnectError):
            served.ask("GET", "/healthz")


def test_a_damaged_run_is_not_served_by_workers(tmp_path: Path) -> None:
    run = small_run(tmp_path)
    spoil_weights(run)
    with serving(run, tmp_path / "log", "--workers", "2") as (process, ended):
        sentence = f"{run} cannot be served: the model of this run computes scores"
        assert ended["error"].startswith(sentence)
        assert process.wait(_PATIENCE_SECONDS) == 1


def test_workers_need_linux(
    castpoi: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("castpoi.serving.workers.sys.platform", "darwin")
    ended = castpoi("serve", small_run(tmp_path), "--port", 0, "--workers", 2)
    assert ended.code == 1
    assert "--workers above 1 needs Linux; start several services" in ended.err
