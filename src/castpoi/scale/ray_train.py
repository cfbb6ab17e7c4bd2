"""Training by several processes on a Ray cluster, with Ray Train.

Ray starts the processes and connects them; each calls `training.train.train`, which shares every
step among them and keeps its checkpoints in OUT.training. If a process or a machine is lost, all
of them start again from the last checkpoint. All machines must have the folders of the city, of
OUT, and of the run from which a training continues, at the same path.
"""

import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import ray
from ray.exceptions import RayError
from ray.train import RunConfig, ScalingConfig, TrainingFailedError
from ray.train.torch import TorchTrainer

from castpoi import __version__
from castpoi.core.config import Count, read_value
from castpoi.core.errors import BadInput, CastPoiError
from castpoi.core.files import check_vacant, read_manifest
from castpoi.methods.run import Run, load_run
from castpoi.scale.cluster import ATTEMPTS, check_version, connect, cores, own_error
from castpoi.training.job import TrainingOptions, ignore
from castpoi.training.train import train

PATIENCE_SECONDS: Final = 60
"""How long to wait for a machine that was lost, or that has just joined the cluster."""


def train_on_ray(
    city: Path,
    out: Path,
    *,
    workers: int,
    address: str | None = None,
    options: TrainingOptions,
    **arguments: Any,
) -> Run:
    """Train by several processes and return the run; `arguments` are those of `train`."""
    read_manifest(city, kind="city")
    check_vacant(out, kind="run", overwrite=bool(arguments.get("overwrite")))
    start = options.start and options.start.folder
    if options.start is not None and start is None:
        raise BadInput("a run in memory cannot be sent to other machines; save it, give its folder")
    work: dict[str, Any] = {
        "version": __version__,
        "city": city.absolute(),
        "out": out.absolute(),
        "start": start and start.absolute(),
        "options": replace(options, start=None, warn=ignore),
        "arguments": arguments,
    }
    threads = read_value(options.settings.get("threads", 1), Count, "threads")
    scratch = out.absolute().with_name(f"{out.name}.ray")  # Ray demands a folder
    connect(address)
    try:
        for attempt in range(ATTEMPTS):
            _wait_for_cores(workers, threads)
            try:
                _fit(work, scratch / str(attempt), workers=workers, threads=threads)
                break
            except (TrainingFailedError, RayError) as problem:
                is_last, cause = attempt == ATTEMPTS - 1, own_error(problem)
                # after a loss, the checkpoints may be locked for a moment
                if cause is not None and (attempt == 0 or is_last):
                    raise cause from problem
                if is_last:
                    raise CastPoiError(
                        f"training failed {ATTEMPTS} times ({problem}); see the logs of Ray, and "
                        "run the same command to resume"
                    ) from problem
                work["options"] = replace(options, start=None, warn=ignore, resume=True)
    finally:
        ray.shutdown()
        shutil.rmtree(scratch, ignore_errors=True)
    return load_run(out)


def _fit(work: dict[str, Any], scratch: Path, *, workers: int, threads: int) -> None:
    """Start the processes and wait for their end."""
    TorchTrainer(
        _train,
        train_loop_config=work,
        scaling_config=ScalingConfig(
            num_workers=workers,
            use_gpu=work["options"].device == "cuda",
            resources_per_worker={"CPU": threads},
        ),
        run_config=RunConfig(name=scratch.name, storage_path=str(scratch.parent)),
    ).fit()


def _train(work: dict[str, Any]) -> None:
    """Train in one of the processes."""
    check_version(work["version"])
    start = work["start"] and load_run(work["start"])
    options = replace(work["options"], start=start)
    train(work["city"], work["out"], options=options, **work["arguments"])


def _wait_for_cores(workers: int, threads: int) -> None:
    """Wait for a lost machine to return; refuse more workers than the cluster can have."""
    until = time.monotonic() + PATIENCE_SECONDS
    while (free := sum(each // threads for each in cores())) < workers:
        if time.monotonic() > until:
            raise BadInput(
                f"the cluster has cores for {free} of {workers} workers with {threads} threads "
                "each; give fewer --workers, or add a machine and run the same command, which "
                "resumes"
            )
        time.sleep(1)
