"""A result on disk: the rank of every target, the metrics, and where they come from.

RESULT/ranks.parquet   one row a target (see rank_table.py), joined across methods by `checkin`
RESULT/top.parquet     the ten best places of every target (see top_table.py); absent in old results
RESULT/metrics.json    metrics, strata, n, seconds
RESULT/manifest.json   method, seed, fingerprint, part, command, versions, commit, wall time

Only the owner of the files may read the two tables: their rows are visits of people.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import polars as pl

from castpoi.core.errors import BrokenFolder
from castpoi.core.files import (
    new_folder,
    read_manifest,
    read_or_nothing,
    read_table,
    write_json,
    write_private_table,
)
from castpoi.evaluation.metrics import Metrics, metrics_of, strata_of
from castpoi.evaluation.rank_table import IS_REVISIT, RANK, RANK_SCHEMA, fault_of
from castpoi.evaluation.top_table import TOP_SCHEMA

RANKS: Final = "ranks.parquet"
_TOP: Final = "top.parquet"
_METRICS: Final = "metrics.json"

_EVALUATE_AGAIN: Final = "evaluate again with 'castpoi evaluate'"
_ROUNDING: Final = 1e-9
"""Two sums of the same metrics differ by less, in whatever order they are made."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """How one method ranked the targets of one part of a city."""

    ranks: pl.DataFrame
    """One row a target, in canonical order."""
    top: pl.DataFrame | None = None
    """The best places of every target; None in older results, which did not keep them."""
    seconds: float
    """Time to encode, score and rank all targets, and to list their best places."""
    manifest: dict[str, Any]
    name: str = "this result"
    """What to call it in a sentence: its folder."""

    @property
    def method(self) -> str:
        """Name of the method."""
        return str(self.manifest["method"])

    @property
    def seed(self) -> int:
        """Seed of its training."""
        return int(self.manifest["seed"])

    @property
    def part(self) -> str:
        """The part of the split that was foretold."""
        return str(self.manifest["part"])

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the city."""
        return str(self.manifest["fingerprint"])

    @property
    def known_time(self) -> bool:
        """Whether the method was told when each target was; such numbers stand apart."""
        return bool(self.manifest.get("known_time", False))

    @property
    def places(self) -> int | None:
        """Number of places in the vocabulary; None where an old manifest does not say."""
        places = self.manifest.get("places")
        return None if places is None else int(places)

    @cached_property
    def metrics(self) -> Metrics:
        """The metrics over all targets."""
        return metrics_of(self.ranks[RANK].to_numpy())

    @cached_property
    def strata(self) -> dict[str, dict[str, float | int | None]]:
        """The metrics and `n` for revisits and for new places."""
        return strata_of(self.ranks[RANK].to_numpy(), self.ranks[IS_REVISIT].to_numpy())

    def summary(self) -> dict[str, Any]:
        """Metrics, strata, number of targets and seconds, as JSON can hold them."""
        return {
            "metrics": self.metrics,
            "strata": self.strata,
            "n": self.ranks.height,
            "seconds": round(self.seconds, 3),
        }

    def save(self, folder: Path, *, overwrite: bool = False) -> None:
        """Write the result; it appears whole or not at all."""
        with new_folder(folder, kind="result", overwrite=overwrite) as staging:
            write_private_table(self.ranks, staging / RANKS)
            if self.top is not None:
                write_private_table(self.top, staging / _TOP)
            write_json(staging / _METRICS, self.summary())
            write_json(staging / "manifest.json", self.manifest)

    @classmethod
    def load(cls, folder: Path) -> "Result":
        """Read a result; its metrics are computed anew from its ranks."""
        needs = {"method", "seed", "part", "fingerprint", "seconds"}
        manifest = read_manifest(folder, kind="result", needs=needs)
        ranks, top = folder / RANKS, folder / _TOP
        result = cls(
            ranks=read_table(ranks, RANK_SCHEMA, how_to_fix=_EVALUATE_AGAIN),
            top=read_table(top, TOP_SCHEMA, how_to_fix=_EVALUATE_AGAIN) if top.exists() else None,
            seconds=float(manifest["seconds"]),
            manifest=manifest,
            name=str(folder),
        )
        fault = fault_of(result.ranks, places=result.places)
        if fault is not None:
            raise BrokenFolder(f"{ranks} is damaged ({fault}); {_EVALUATE_AGAIN}")
        result._check_metrics(folder / _METRICS)
        return result

    def _check_metrics(self, path: Path) -> None:
        """Refuse ranks that do not give the metrics that were written with them."""
        for name, told in (read_or_nothing(path).get("metrics") or {}).items():
            found = self.metrics.get(name)
            if told is not None and found is not None and abs(told - found) > _ROUNDING:
                raise BrokenFolder(
                    f"{path} says {name} {told:.4f}, the ranks beside it give {found:.4f}; "
                    f"{_EVALUATE_AGAIN}"
                )
