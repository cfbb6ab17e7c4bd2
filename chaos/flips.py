"""Single flipped bits in a city, a run and a result: refused with a sentence, or no effect."""

import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import polars as pl

from castpoi.checkins.city import City
from castpoi.core.errors import CastPoiError
from castpoi.evaluation.result import Result
from castpoi.methods.run import load_run
from chaos.attack import Arena
from chaos.outcome import Outcome

FLIPS: Final = 120
"""Of each file of a city: 600 of its five files."""
FEWER_FLIPS: Final = 60
"""Of each file of a run or result."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of folder, and how to read it."""

    name: str
    files: tuple[str, ...]
    flips: int
    read: Callable[[Path], list[Any]]
    """Returns all contents of the folder as castpoi reads them: tables and plain values."""


def attack(arena: Arena) -> Iterator[Outcome]:
    """Flip bits in the files of a city, a run and a result."""
    inputs = arena.inputs
    for folder, kind in (
        (inputs.city, CITY), (inputs.learned, RUN), (inputs.results / "revisit", RESULT)
    ):  # fmt: skip
        copy = Path(shutil.copytree(folder, arena.folder / kind.name))
        for file in kind.files:
            yield flip_file(arena, kind, copy, file)


def flip_file(arena: Arena, kind: Kind, folder: Path, file: str) -> Outcome:
    """Flip one bit at a time in a file, and read the folder after each."""
    rng = random.Random(f"{arena.seed} {kind.name} {file}")
    outcome = Outcome(attack=f"one bit of {kind.name}/{file} flipped")
    whole, path = kind.read(folder), folder / file
    content = path.read_bytes()
    for _ in range(kind.flips):
        position, bit = rng.randrange(len(content)), rng.randrange(8)
        flipped = bytearray(content)
        flipped[position] ^= 1 << bit
        path.write_bytes(flipped)
        problem = effect_of_reading(kind, folder, whole)
        outcome.trial([] if problem is None else [f"byte {position}, bit {bit}: {problem}"])
    path.write_bytes(content)
    arena.report(f"{outcome.attack}: {outcome.tried} tried, {outcome.lost} lost")
    return outcome


def effect_of_reading(kind: Kind, folder: Path, whole: list[Any]) -> str | None:
    """The effect of the damage; None if the folder is refused or reads as if it were whole."""
    try:
        found = kind.read(folder)
    except CastPoiError:
        return None
    except BaseException as problem:  # a panic of a library is no Exception
        if isinstance(problem, KeyboardInterrupt):
            raise
        return f"unexpected {type(problem).__name__}: {str(problem)[:80]}"
    pairs = zip(whole, found, strict=True)
    differs = [number for number, pair in enumerate(pairs) if not _same(*pair)]
    return f"accepted, and part {differs[0]} of what is read has changed" if differs else None


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, pl.DataFrame):
        return one.equals(other)
    return bool(one == other)


def _read_city(folder: Path) -> list[Any]:
    city = City.load(folder)
    return [city.manifest, city.checkins, city.users, city.places, city.split]


def _read_run(folder: Path) -> list[Any]:
    run = load_run(folder)
    weights = {name: array.tobytes() for name, array in run.ranker.arrays.items()}
    return [run.manifest, run.ranker.config, weights, run.places]


def _read_result(folder: Path) -> list[Any]:
    result = Result.load(folder)
    return [result.manifest, result.ranks, result.beyond, result.metrics, result.strata]


CITY: Final = Kind(
    name="city",
    files=(
        *("checkins.parquet", "users.parquet", "places.parquet", "split.parquet"),
        "manifest.json",
    ),
    flips=FLIPS,
    read=_read_city,
)
RUN: Final = Kind(
    name="run",
    files=("model.safetensors", "config.json", "places.parquet", "manifest.json"),
    flips=FEWER_FLIPS,
    read=_read_run,
)
RESULT: Final = Kind(
    name="result",
    files=("ranks.parquet", "metrics.json", "manifest.json"),
    flips=FEWER_FLIPS,
    read=_read_result,
)
