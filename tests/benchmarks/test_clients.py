"""The crowd that measures the service counts what it should."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.clients import Crowd, Order

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


def test_a_crowd_asks_so_many_times_and_no_more(live: Live) -> None:
    order = Order(port=port_of(live), path="/healthz", clients=4, requests=21)
    told = asyncio.run(Crowd(order).ask_all())
    assert (told.requests, told.errors) == (21, 0)
    assert 0 < told.p50_ms <= told.p99_ms


def test_a_crowd_stops_when_its_time_is_over(live: Live) -> None:
    order = Order(port=port_of(live), path="/healthz", clients=2, seconds=0.1)
    told = asyncio.run(Crowd(order).ask_all())
    assert told.requests >= 2
    assert told.errors == 0


def test_answers_other_than_200_are_errors_and_no_latencies(live: Live) -> None:
    bodies = [{"history": MORNING, "k": 2}, {"history": MORNING, "k": 0}]
    order = Order(port=port_of(live), path="/v1/recommend", clients=1, bodies=bodies, requests=6)
    crowd = Crowd(order)
    told = asyncio.run(crowd.ask_all())
    assert (told.requests, told.errors) == (6, 3)
    assert len(crowd.latencies) == 3


def test_a_crowd_that_gets_no_answer_at_all_says_so(live: Live) -> None:
    order = Order(port=port_of(live), path="/v1/nowhere", clients=1, requests=2)
    with pytest.raises(SystemExit, match="nobody got an answer from /v1/nowhere"):
        asyncio.run(Crowd(order).ask_all())
