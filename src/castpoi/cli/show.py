"""`castpoi show`, `methods` and `doctor`: what a folder, castpoi and this machine contain."""

import os
import platform
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import fields
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import click

from castpoi import __version__
from castpoi.cli.console import Console, output_options
from castpoi.cli.options import FOLDER, field_docstrings
from castpoi.core.errors import BrokenFolder, CastPoiError
from castpoi.core.files import KINDS, read_json
from castpoi.core.provenance import commit
from castpoi.methods.registry import METHODS, Method
from castpoi.training.train import configs_for

_MANIFESTS: Final = ("manifest.json", "suite.json", "tune.json", "synthesis.json")
_SHOWN: Final[tuple[str, ...]] = (
    *("method", "preset", "settings", "seed", "part", "known_time"),
    *("city", "run", "cities", "tables", "experiments", "trials", "sources", "fingerprint"),
    *("checkins", "users", "places", "days", "train", "validation", "test", "left_out", "targets"),
    *("revisit_share", "metrics", "best", "command"),
    *("prepared_at_utc", "started_utc", "ended_utc", "wall_seconds", "peak_memory_mb", "commit"),
)
"""Entries of manifests, in the order in which they are shown."""
_NEXT: Final[Mapping[str, tuple[str, ...]]] = {
    "city": ("data describe {}", "data audit {}", "train {} --out RUN"),
    "run": ("evaluate {} --out RESULT", "recommend {} --user ID", "serve {}"),
    "result": ("compare {} RESULT...",),
    "suite": ("report {}",),
    "synthesis": ("data prepare {}/checkins.parquet --out CITY",),
    "demo": ("serve {}/run", "data describe {}/city", "compare {}/results"),
}
"""Commands that use a folder, by its kind."""


@click.command()
@click.argument("folder", type=FOLDER)
@output_options
def show(console: Console, folder: Path) -> None:
    """Show what a FOLDER of castpoi contains, how it was made, and which commands use it.

    FOLDER is a city, a run, a result, a report, a synthetic city, a demo, or the folder of
    'castpoi reproduce' or 'castpoi tune'. Its files are not checked; 'castpoi data audit' checks
    a city.
    """
    manifest = _manifest_of(folder)
    kind = str(manifest["kind"])
    found = {name: manifest[name] for name in _SHOWN if name in manifest}
    found["castpoi"] = manifest.get("versions", manifest).get("castpoi")
    if "command" not in found and kind in KINDS:
        found["command"] = KINDS[kind].made_by
    shown = {name: value for name, value in found.items() if value not in (None, {}, "")}
    commands = [
        f"castpoi {words.format(shlex.quote(str(folder)))}" for words in _NEXT.get(kind, ())
    ]
    console.table(
        (kind, str(folder)),
        [
            (name, f"{each:,}" if type(each) is int and name != "seed" else _words(each))
            for name, each in shown.items()
        ],
        left=2,
    )
    for command in commands:
        console.print(f"Next: {command}")
    console.result({"folder": str(folder), "kind": kind, **shown, "next": commands})


def _manifest_of(folder: Path) -> dict[str, Any]:
    """The entries of the manifest of any kind of folder; long lists are counts or names."""
    file = next((folder / name for name in _MANIFESTS if (folder / name).is_file()), None)
    content = {} if file is None else read_json(file)
    if "kind" not in content:
        raise BrokenFolder(
            f"{folder} is not a folder that castpoi made; give a city, a run, a result, a report, "
            "a demo or the folder of a suite"
        )
    metrics = folder / "metrics.json"
    measured = read_json(metrics) if content["kind"] == "result" and metrics.is_file() else {}
    brief: dict[str, Any] = {
        name: list(content[name]) for name in ("cities", "tables") if name in content
    }
    if "experiments" in content:
        brief["experiments"] = Counter(each["state"] for each in content["experiments"].values())
    if "trials" in content:
        brief["trials"] = Counter(each["state"] for each in content["trials"])
    if "sources" in content:
        brief["sources"] = [each["file"] for each in content["sources"]]
    return {**content, **content.get("row", {}), "metrics": measured.get("metrics"), **brief}


def _words(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}={_words(each)}" for name, each in value.items())
    if isinstance(value, list):
        return ", ".join(map(_words, value))
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


@click.command()
@click.argument("name", required=False)
@click.option("--preset", metavar="NAME", help="Preset whose values are shown.")
@output_options
def methods(console: Console, name: str | None, preset: str | None) -> None:
    """List the methods; with a NAME, list the settings of that method and their values in a preset.

    'castpoi train --set NAME=VALUE' changes a setting.
    """
    if name is not None:
        _show_settings(console, METHODS.named(name), preset)
        return
    if preset is not None:
        raise click.UsageError("--preset needs the NAME of a method.")
    rows = [(each.name, ", ".join(each.presets), each.line) for each in METHODS]
    console.table(("method", "presets", ""), rows, left=3)
    console.result({"methods": [_about(each) for each in METHODS]})


def _show_settings(console: Console, method: Method, preset: str | None) -> None:
    """Show a method and each of its settings: its value, and one sentence."""
    preset = preset or method.default_preset
    if preset is None or not method.is_ours:
        why = "has no settings" if preset is None else "is of another package, which documents it"
        console.print(f"{method.name}: {method.line}. It {why}.")
        console.result({**_about(method), "preset": None, "settings": []})
        return
    settings = [
        {"name": field.name, "of": of, "value": getattr(config, field.name), "about": about}
        for of, config in zip(("model", "training"), configs_for(method, preset, {}), strict=True)
        for field in fields(config)
        for about in [field_docstrings(type(config)).get(field.name, "")]
    ]
    console.print(f"{method.name}: {method.line}. Presets: {', '.join(method.presets)}.")
    rows = [[_words(each[key]) for key in ("name", "value", "of", "about")] for each in settings]
    console.table(("setting", preset, "of", ""), rows, left=4)
    console.result({**_about(method), "preset": preset, "settings": settings})


def _about(method: Method) -> dict[str, Any]:
    return {"method": method.name, "about": method.line, "presets": list(method.presets)}


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
