"""The commands under attack: small inputs, arguments, and the files that they must write."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from tests.checkins.file_server import Answer, serving
from tests.checkins.small_sources import GOWALLA
from tests.contract import odd_city
from tests.training.small import TINY_WORDS

from chaos.process import done

_SASREC: Final = {"width": 8, "heads": 2, "feed_forward_width": 8, "layers": 1, "epochs": 6}
_SUITE: Final = f"""
title = "Chaos"
seeds = [1]
[rows.revisit]
label = "Revisit heuristic"
method = "revisit"
role = "heuristic"
[rows.learned]
label = "SASRec"
method = "sasrec"
role = "ours"
set = {{ {", ".join(f"{name} = {value}" for name, value in _SASREC.items())} }}
"""


@dataclass(frozen=True)
class Inputs:
    """Small inputs in one folder, created once for all attacks."""

    folder: Path

    @property
    def table(self) -> Path:
        """A raw table of some 500 check-ins."""
        return self.folder / "town.csv"

    @property
    def city(self) -> Path:
        """That table, prepared."""
        return self.folder / "town"

    @property
    def village(self) -> Path:
        """A city of 14 check-ins, for trainings of a second."""
        return self.folder / "village"

    @property
    def run(self) -> Path:
        """A run of the city with a counting baseline."""
        return self.folder / "run"

    @property
    def learned(self) -> Path:
        """A learned run of the village."""
        return self.folder / "learned"

    @property
    def results(self) -> Path:
        """A folder with one result of the run."""
        return self.folder / "results"

    @property
    def suite(self) -> Path:
        """A suite of one counting and one learned row."""
        return self.folder / "chaos.toml"

    def make(self) -> None:
        """Create all inputs."""
        self.folder.mkdir()
        village = odd_city()
        replace(village, manifest={**village.manifest, "train": 8}).save(self.village)
        self.suite.write_text(_SUITE, encoding="utf-8")
        people = ("--users", 20, "--places", 40, "--days", 30, "--seed", 5)
        revisit = ("--model", "revisit")
        for words in (
            ["data", "synthesize", *people, "--out", self.table],
            ["data", "prepare", self.table, "--out", self.city],
            ["train", self.city, *revisit, "--out", self.run],
            ["evaluate", self.run, "--out", self.results / "revisit"],
            [*learned_words(self), "--out", self.learned],
        ):
            done(words, self.folder)


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command that writes to OUT, and the files of OUT that are the same in every run."""

    name: str
    words: tuple[object, ...]
    """All arguments but --out."""
    out: str = "out"
    same: tuple[str, ...]
    """Patterns of the files in OUT that have the same bytes in every run; "" is OUT itself."""
    overwrites: bool = True
    """Whether it has --overwrite; the other commands add to OUT."""

    def to(self, folder: Path, *, overwrite: bool = False) -> list[object]:
        """The arguments that write to OUT in a folder."""
        option = ["--overwrite"] if overwrite else []
        return [*self.words, "--out", folder / self.out, *option]

    def digests(self, folder: Path) -> dict[str, str]:
        """The files in OUT, each with its SHA-256 if it is the same in every run, else ""."""
        out = folder / self.out
        if out.is_file():
            return {"": _sha256(out)}
        same = {path for pattern in self.same if pattern for path in out.glob(pattern)}
        found = sorted(path for path in out.rglob("*") if path.is_file())
        return {str(path.relative_to(out)): _sha256(path) if path in same else "" for path in found}


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def learned_words(inputs: Inputs) -> list[object]:
    """A training of six epochs on the village."""
    epochs = ("--set", "epochs=6")
    return ["train", inputs.village, "--model", "castpoi", *TINY_WORDS, *epochs, "--threads", 1]


def folder_commands(inputs: Inputs) -> list[Command]:
    """The commands whose OUT appears as a whole folder or not at all."""
    tables = ("*.parquet",)
    return [
        Command(name="prepare", words=("data", "prepare", inputs.table), same=tables),
        Command(name="train", words=tuple(learned_words(inputs)), same=("*.safetensors", *tables)),
        Command(name="evaluate", words=("evaluate", inputs.run), same=tables),
        Command(name="report", words=("report", inputs.results), same=("tables/*",)),
    ]


def synthesize_commands() -> list[Command]:
    """`data synthesize` into a folder and into a file."""
    people = ("--users", 20, "--places", 40, "--days", 30, "--seed", 5)
    words = ("data", "synthesize", *people)
    return [
        Command(name="synthesize", words=words, same=("*.parquet",)),
        Command(name="synthesize, a file", words=words, out="out.csv", same=("",)),
    ]


def adding_commands(inputs: Inputs) -> list[Command]:
    """The commands that add to OUT, and resume after a kill."""
    sasrec = [word for name, value in _SASREC.items() for word in ("--set", f"{name}={value}")]
    reproduce = ("reproduce", inputs.village, "--suite", inputs.suite, "--threads", 1)
    tune = ("tune", inputs.village, "--model", "sasrec", "--preset", "tuned", "--threads", 1)
    return [
        Command(name="reproduce", words=reproduce, same=("**/ranks.parquet",), overwrites=False),
        Command(name="tune", words=(*tune, *sasrec, "--try", "dropout=0.2"), same=(),
                overwrites=False),
        Command(name="fetch", words=("data", "fetch", "gowalla"), same=("*.gz",), overwrites=False),
    ]  # fmt: skip


@contextmanager
def slow_file_server() -> Iterator[None]:
    """A server on this machine that takes half a second for the file of `data fetch`."""
    name = "loc-gowalla_totalCheckins.txt.gz"
    with serving() as server:
        server.files[name] = GOWALLA
        server.always = Answer(chunk=1 + len(GOWALLA) // 25, pause_seconds=0.02)
        os.environ["CHAOS_DATA_URL"] = server.url(name)  # read by chaos.castpoi_command
        yield
