"""`castpoi doctor`: versions, processors, libraries and the database, for a bug report."""

import os
import platform
import re
from collections.abc import Iterator
from importlib import metadata
from typing import Final

import click

from castpoi import __version__
from castpoi.cli.console import Console, output_options
from castpoi.core.errors import CastPoiError
from castpoi.core.provenance import commit

_VARIABLES: Final = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "GOMP_SPINCOUNT", "CUDA_VISIBLE_DEVICES")
_FOR_DEVELOPERS: Final = ("dev", "docs", "bench")


@click.command()
@click.option("--store", metavar="URL", envvar="CASTPOI_STORE", help="Also open this visit store.")
@output_options
def doctor(console: Console, store: str | None) -> None:
    """Show versions, processors, libraries and what is missing, to paste into a bug report.

    It changes nothing.
    """
    found = dict([*_system(), *_torch(), *_libraries(), *_database(store)])
    (first, *others) = found.items()
    console.table(first, others, left=2)
    console.result(found)


def _system() -> Iterator[tuple[str, str]]:
    revision = commit()
    yield "castpoi", __version__ + (f" ({revision[:12]})" if revision else "")
    yield "python", f"{platform.python_version()} ({platform.python_implementation()})"
    yield "system", platform.platform()
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    yield "memory", f"{pages / 2**30:.1f} GB"
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield "cores", f"{cores} of {os.cpu_count()}"
    variables = [f"{name}={os.environ[name]}" for name in _VARIABLES if name in os.environ]
    yield "environment", ", ".join(variables) or "-"


def _torch() -> Iterator[tuple[str, str]]:
    import torch

    blas = re.search(r"BLAS_INFO=(\w+)", torch.__config__.show())
    yield "torch", torch.__version__
    yield "threads", str(torch.get_num_threads())
    yield "blas", f"{blas[1] if blas else '-'}, {torch.backends.cpu.get_cpu_capability()}"
    gpu = "none"
    if torch.cuda.is_available():
        gpu = f"{torch.cuda.get_device_name()} (CUDA {torch.version.cuda})"
    elif torch.backends.mps.is_available():
        gpu = "Apple (mps)"
    yield "gpu", gpu


def _libraries() -> Iterator[tuple[str, str]]:
    """The libraries that castpoi needs, and those of each extra; a missing one is named."""
    by_extra: dict[str, list[str]] = {}
    for requirement in metadata.requires("castpoi") or ():
        extra = re.search(r"extra == ['\"]([\w-]+)['\"]", requirement)
        name = re.match(r"[\w.-]+", requirement)
        if name and name[0] != "castpoi":
            by_extra.setdefault(extra[1] if extra else "", []).append(name[0])
    for group, names in by_extra.items():
        if group not in _FOR_DEVELOPERS:
            yield f"extra {group}" if group else "libraries", ", ".join(map(_version, names))


def _version(name: str) -> str:
    try:
        return f"{name} {metadata.version(name)}"
    except metadata.PackageNotFoundError:
        return f"{name} MISSING"


def _database(store: str | None) -> Iterator[tuple[str, str]]:
    if store is None:
        return
    kind = store.partition(":")[0]
    try:
        from castpoi.serving.store_engine import check_exists, open_engine

        check_exists(store)
        open_engine(store).dispose()
        yield "store", f"{kind}: answers"
    except (ModuleNotFoundError, CastPoiError) as problem:
        yield "store", f"{kind}: {type(problem).__name__}: {problem}"
