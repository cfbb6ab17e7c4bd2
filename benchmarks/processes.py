"""Training steps by one process and by two: what each of them computes and sends.

    python -m benchmarks.processes CITY [--copies N] [--objective sampled] [--windows 8] --out FILE

Two processes cannot be faster than the CPU time of one, divided by that of the busier of the two;
waiting for each other and for the network comes on top. CPU time is meaningful on a busy machine.
`--copies` multiplies the places of the city. The file keeps earlier measurements.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
import torch.distributed as dist

from benchmarks.scale import DEGREES, city_of_copies
from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.core.provenance import commit
from castpoi.model.castpoi import new_model
from castpoi.model.config import ModelConfig
from castpoi.training.castpoi import objective_of
from castpoi.training.config import CastPoiTraining, ObjectiveName
from castpoi.training.device import deterministic
from castpoi.training.distributed import process_group
from castpoi.training.loop import TrainingContext, TrainingLoop

CPU = torch.device("cpu")


@dataclass(frozen=True, kw_only=True)
class Steps:
    """What is measured."""

    city: str
    copies: int
    objective: ObjectiveName
    windows: int
    steps: int


def with_copies(city: City, copies: int) -> City:
    """The city with its places multiplied; the copies are up to a kilometre away."""
    if copies == 1:
        return city
    rng = np.random.default_rng(7)
    number = np.repeat(np.arange(city.places.height), copies)
    shift = rng.uniform(-DEGREES, DEGREES, size=(2, len(number)))
    places = city.places[number].with_columns(
        pl.int_range(len(number)).cast(city.places.schema[record.PLACE]).alias(record.PLACE),
        pl.format("{}-{}", record.PLACE_ID, pl.int_range(len(number))).alias(record.PLACE_ID),
        pl.Series(record.LAT, city.lat[number] + shift[0]),
        pl.Series(record.LON, city.lon[number] + shift[1]),
    )
    return city_of_copies(city, places)


def measured(what: Steps) -> dict[str, Any]:
    """CPU seconds of some steps in this process, and the bytes that it sends."""
    city = with_copies(City.load(Path(what.city)), what.copies)
    model = ModelConfig.preset("next")
    training = replace(
        CastPoiTraining.preset("next"), objective=what.objective, windows_per_step=what.windows
    )
    sent = [0]

    def counting(send: Any, tensor: int) -> Any:
        def counted(*tensors: Any) -> Any:
            sent[0] += tensors[tensor].nbytes
            return send(*tensors)

        return counted

    dist.all_reduce = counting(dist.all_reduce, 0)
    dist.all_gather = counting(dist.all_gather, 1)
    with process_group(CPU) as group, deterministic(CPU, threads=1):
        objective: Any = objective_of(city, model, training, seed=7)
        network = new_model(config=model, lat=city.lat, lon=city.lon, seed=7)
        context = TrainingContext(group=group)
        loop = TrainingLoop(
            network, objective, lambda _: {}, config=training, seed=7, context=context
        )
        network.train()
        batches = objective.batches(0)[: what.steps]
        for batch in batches:  # the features are kept between epochs
            loop._step(batch, 0.0, 0)
        sent[0], began = 0, time.process_time()
        targets = sum(loop._step(batch, 0.0, 0)[1] for batch in batches)
        seconds = time.process_time() - began
    return {
        "places": city.places.height,
        "targets": targets,
        "cpu_seconds": round(seconds, 2),
        "mb_sent_per_step": round(sent[0] / len(batches) / 1e6, 2),
        "rows_per_step": 0 if loop.rows is None else len(loop.rows.rows),
    }


def of_processes(ranks: int, port: int) -> list[dict[str, Any]]:
    """The same command in several processes."""
    world = {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    command = [sys.executable, "-m", "benchmarks.processes", *sys.argv[1:]]
    processes = [
        subprocess.Popen(command, env={**os.environ, **world, "RANK": str(rank)}, stdout=-1)
        for rank in range(ranks)
    ]
    return [json.loads(process.communicate()[0]) for process in processes]


def main() -> None:
    """Measure one process, then two, and add the numbers to the file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.processes", description=__doc__)
    parser.add_argument("city")
    parser.add_argument("--copies", type=int, default=1)
    parser.add_argument("--objective", default="fast")
    parser.add_argument("--windows", type=int, default=8)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--port", type=int, default=29533)
    parser.add_argument("--out", type=Path, required=True)
    options = vars(parser.parse_args())
    out, port = options.pop("out"), options.pop("port")
    what = Steps(**options)
    if "RANK" in os.environ:
        print(json.dumps(measured(what)))
        return
    one, *two = *of_processes(1, port), *of_processes(2, port)
    busier = max(each["cpu_seconds"] for each in two)
    found = {
        **asdict(what), "city": Path(what.city).name, "commit": commit(), "one": one, "two": two,
        "largest_speed_up": round(one["cpu_seconds"] / busier, 2),
    }  # fmt: skip
    before = json.loads(out.read_text()) if out.exists() else []
    out.write_text(json.dumps([*before, found], indent=1) + "\n", encoding="utf-8")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
