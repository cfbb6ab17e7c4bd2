"""`benchmarks.clients`: number of requests, errors and latencies."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.clients import Clients, Load

from castpoi.recommend.recommender import load
from tests.serving.live import MORNING, Live, living, service_of
from tests.serving.small_run import small_run


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    folder: Path = tmp_path_factory.mktemp("measured")
    with living(service_of(load(small_run(folder)), folder)) as live:
        yield live


def port_of(live: Live) -> int:
    return int(live.address.rsplit(":", 1)[1])


def test_clients_send_exactly_the_given_number_of_requests(live: Live) -> None:
    load = Load(port=port_of(live), path="/healthz", clients=4, requests=21)
    report = asyncio.run(Clients(load).send_all())
    assert (report.requests, report.errors) == (21, 0)
    assert 0 < report.p50_ms <= report.p99_ms


def test_clients_stop_when_their_time_is_over(live: Live) -> None:
    load = Load(port=port_of(live), path="/healthz", clients=2, seconds=0.1)
    report = asyncio.run(Clients(load).send_all())
    assert report.requests >= 2
    assert report.errors == 0


def test_responses_other_than_200_count_as_errors_without_latency(live: Live) -> None:
    bodies = [{"history": MORNING, "k": 2}, {"history": MORNING, "k": 0}]
    load = Load(port=port_of(live), path="/v1/recommend", clients=1, bodies=bodies, requests=6)
    clients = Clients(load)
    report = asyncio.run(clients.send_all())
    assert (report.requests, report.errors) == (6, 3)
    assert len(clients.latencies) == 3


def test_a_load_without_any_success_is_an_error(live: Live) -> None:
    load = Load(port=port_of(live), path="/v1/nowhere", clients=1, requests=2)
    with pytest.raises(SystemExit, match="no successful response from /v1/nowhere"):
        asyncio.run(Clients(load).send_all())
