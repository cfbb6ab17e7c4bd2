"""Connection to a Ray cluster, and the errors of castpoi on its machines."""

import os
import re
import socket
from typing import Any, Final

import ray
from ray.exceptions import RayError

from castpoi import __version__
from castpoi.core.errors import BadInput, CastPoiError

ATTEMPTS: Final = 5
"""Maximum number of starts of a job; it is started again if the loss of a machine ended it."""
HOST_AND_PORT: Final = re.compile(r"[\w.-]+:\d+")


def connect(address: str | None) -> None:
    """Connect to the cluster at an address, or start Ray on this machine."""
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    try:
        if address is not None and HOST_AND_PORT.fullmatch(address):
            host, port = address.rsplit(":", 1)  # Ray alone would wait for a minute
            socket.create_connection((host, int(port)), timeout=5).close()
        if address is None:
            os.environ.setdefault("RAY_worker_niceness", "0")  # of Ray's own accord it is 15
            # a core more than actors, which take one each, for reading and writing
            ray.init(num_cpus=(os.cpu_count() or 1) + 1, include_dashboard=False, **quiet)
        else:
            ray.init(address=address, **quiet)
    except (OSError, RuntimeError, ValueError, RayError) as problem:
        raise BadInput(
            f"no Ray cluster answers at {address or 'this machine'} ({problem}); start one with "
            "'ray start --head', or leave out --address"
        ) from problem


def check_version(version: str) -> None:
    """Refuse to work for a driver with another version of castpoi."""
    if version != __version__:
        raise BadInput(
            f"a machine of the cluster has castpoi {__version__}, but this one has {version}; "
            "install the same version on all of them"
        )


def cores() -> list[int]:
    """Number of cores of each machine that is alive."""
    nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    return [int(node["Resources"].get("CPU", 0)) for node in nodes if node["Alive"]]


def own_error(problem: BaseException) -> CastPoiError | None:
    """The error of castpoi that an error of Ray wraps."""
    seen: BaseException | None = problem
    while seen is not None and not isinstance(seen, CastPoiError):
        workers = getattr(seen, "worker_failures", {}).values()
        found = [error for error in map(own_error, workers) if error is not None]
        if found:
            return found[0]
        seen = getattr(seen, "cause", None) or seen.__cause__ or seen.__context__
    return seen
