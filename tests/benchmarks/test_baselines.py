"""The benchmark of the baselines, with and without the oracle."""

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from benchmarks.clients import Clients, Load

from benchmarks import __main__ as benchmarks
from benchmarks import baselines, learning
from castpoi.checkins.prepare import Preparation, prepare
from castpoi.checkins.synthetic import SynthesisConfig, synthesize, write_checkins
from castpoi.model.config import ModelConfig
from castpoi.recommend.recommender import load
from tests.serving.live import MORNING, Live, living, service_of
from tests.serving.small_run import small_run

SEVEN = ["sasrec", "bert4rec", "caser", "narm", "srgnn", "stamp", "core"]


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[str, ...]]:
    """The commands that would run; those of the oracle take ten times as long."""
    run: list[tuple[str, ...]] = []

    def json_of(*command: str) -> dict[str, float]:
        run.append(command)
        seconds = 20.0 if command[0] == "oracle-python" else 2.0
        return {"seconds_per_epoch": seconds, "peak_gb": 0.5}

    monkeypatch.setattr(baselines, "_json_of", json_of)
    monkeypatch.setattr(baselines, "_new_york", lambda folder: folder / "nyc")
    return run


def test_without_an_oracle_ours_is_measured_and_a_message_says_so(
    commands: list[tuple[str, ...]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("CASTPOI_ORACLE_PYTHON", raising=False)
    rows = baselines.baselines_against_oracle(tmp_path, 0)
    assert "the oracle is not measured: CASTPOI_ORACLE_PYTHON is not set" in capsys.readouterr().out
    assert rows == {name: {"our_seconds": 2.0, "our_peak_gb": 0.5} for name in SEVEN}


def test_with_an_oracle_each_row_has_how_many_times_faster_ours_is(
    commands: list[tuple[str, ...]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CASTPOI_ORACLE_PYTHON", "oracle-python")
    rows = baselines.baselines_against_oracle(tmp_path, 0)
    assert list(rows) == SEVEN
    assert {row["times_faster"] for row in rows.values()} == {10.0}
    theirs = [command for command in commands if command[0] == "oracle-python"]
    assert all(Path(tool).is_file() for _, tool, *_ in theirs)
    assert {command[2] for command in theirs} == {"train"}
    assert {city for *_, city, _, _ in theirs} == {str(tmp_path / "nyc")}


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


@pytest.fixture
def hamlet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A prepared city, set as CASTPOI_CITY."""
    config = SynthesisConfig(users=8, places=30, days=15)
    source = write_checkins(
        synthesize(config, seed=5), tmp_path / "checkins.csv", config=config, seed=5
    )
    prepare([source], tmp_path / "hamlet", Preparation(accept_rhythm=True))
    monkeypatch.setenv("CASTPOI_CITY", str(tmp_path / "hamlet"))
    return tmp_path / "hamlet"


def test_a_pair_with_a_full_window_costs_the_operations_that_the_paper_counts() -> None:
    fast = ModelConfig.preset("fast")
    assert pair_multiply_adds(fast, 50) == 173_184
    assert pair_multiply_adds(fast, 50) - pair_multiply_adds(fast, 49) == 2 * 2 * 128


def pair_multiply_adds(config: ModelConfig, visits: int) -> float:
    return learning.pair_flop(config, visits=visits) / 2


def test_a_given_city_is_measured_and_the_file_has_commit_and_threads(
    hamlet: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(learning, "FAST_STEPS", 2)
    monkeypatch.setattr(learning, "NEXT_STEPS", 1)
    written = hamlet.parent / "bench.json"
    only = [word for name in ("learn", "parts", "score") for word in ("--only", name)]
    arguments = [*only, "--out", str(written)]
    monkeypatch.setattr(sys, "argv", ["benchmarks", *arguments])
    benchmarks.main()
    report = json.loads(written.read_text())
    assert report["threads"] == torch.get_num_threads()
    assert "commit" in report
    assert report["learn"]["city"] == report["score"]["city"] == "hamlet"
    assert report["learn"]["full_batch"] == 128
    assert 0 < report["learn"]["full_targets"] <= 128
    assert 0 < report["score"]["visits_read"] < 50
    assert report["score"]["share_of_product_rate"] > 0
    assert report["parts"]["targets"] > 0
    assert report["parts"]["mflop_per_target"] > 0.1
    assert "hamlet" in capsys.readouterr().out
