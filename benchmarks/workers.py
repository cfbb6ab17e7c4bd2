"""`castpoi serve` with one, two and three workers: requests a second, and memory of a worker.

Rates are also given for a second of CPU time of the whole service, since other work on the machine
takes part of every second.
"""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from benchmarks.clients import Load, send
from benchmarks.serving import histories, serving, untrained_run

PLACES: Final = 5_000
SECONDS: Final = 10
ROUNDS: Final = 3
"""The numbers of workers are measured in turn this often."""


def service_with_workers(folder: Path, checkins: int) -> dict[str, Any]:
    """Rates and memory by number of workers, and the memory that each further worker adds."""
    run = untrained_run(folder / f"untrained-castpoi-next-{PLACES}", "castpoi-next", PLACES)
    found: dict[str, dict[str, float]] = {}
    for _ in range(ROUNDS):
        for workers in (1, 2, 3):
            row = found.setdefault(f"{workers}_workers", {"per_second": 0.0})
            now = _measured(run, workers)
            row |= now if now["per_second"] > row["per_second"] else {}
    added = found["3_workers"]["memory_mb"] - found["2_workers"]["memory_mb"]
    return {
        **found,
        "added_by_a_worker_mb": added,
        "share_of_one_process": added / found["1_workers"]["memory_mb"],
    }


def _measured(run: Path, workers: int) -> dict[str, float]:
    with serving(run, "--workers", str(workers)) as server:
        load = Load(port=server.port, path="/v1/recommend", clients=16, bodies=histories(PLACES))
        send(replace(load, requests=200))
        processes = _tree(server.process)
        before = sum(map(_cpu_seconds, processes))
        sent = send(replace(load, seconds=SECONDS))
        used = sum(map(_cpu_seconds, processes)) - before
        memory = sum(map(_memory_mb, processes))
    return {
        "per_second": sent.per_second,
        "per_cpu_second": sent.requests / used,
        "cpu_seconds": used,
        "p50_ms": sent.p50_ms,
        "p99_ms": sent.p99_ms,
        "errors": sent.errors,
        "memory_mb": memory,
    }


def _tree(process: int) -> list[int]:
    """A process and all its descendants."""
    tasks = Path(f"/proc/{process}/task").iterdir()
    children = [int(child) for task in tasks for child in (task / "children").read_text().split()]
    return [process, *(each for child in children for each in _tree(child))]


def _cpu_seconds(process: int) -> float:
    user, system = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _memory_mb(process: int) -> float:
    """Proportional memory: a page that n processes share counts 1/n for each."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
