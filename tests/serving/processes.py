"""Processes of a service with several workers, as Linux shows them."""

from pathlib import Path


def children_of(process: int) -> list[int]:
    """The processes that another one has started and that still run."""
    tasks = Path(f"/proc/{process}/task")
    words = " ".join((task / "children").read_text() for task in tasks.iterdir())
    return [each for each in map(int, words.split()) if is_running(each)]


def workers_of(supervisor: int) -> list[int]:
    """The workers of a supervisor; those of two generations during a reload."""
    return [worker for child in children_of(supervisor) for worker in children_of(child)]


def is_running(process: int) -> bool:
    """Whether a process exists and has not ended."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def memory_mb(process: int) -> dict[str, float]:
    """Memory of a process by the names of /proc/PID/smaps_rollup, in MB."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()[1:]
    return {name: int(rest.split()[0]) / 1024 for name, rest in (x.split(":") for x in lines)}
