"""A result on disk: the rank of every target, the metrics, and where they come from.

RESULT/ranks.parquet   one row a target (see rank_table.py), joined across methods by `checkin`
RESULT/metrics.json    metrics, strata, n, seconds, and properties of the ten best places (beyond)
RESULT/manifest.json   method, row (method, preset, settings), seed, fingerprint and size of the
                       city, part, command, versions, commit, wall time, SHA-256 of the files

Only the owner of the files may read the table: its rows are visits of people.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import polars as pl

from castpoi.core.checksums import SHA256, check_files, write_manifest
from castpoi.core.errors import BrokenFolder
from castpoi.core.files import new_folder, read_json, read_manifest, write_json
from castpoi.core.tables import read_table, write_private_table
from castpoi.evaluation.beyond import BeyondAccuracy
from castpoi.evaluation.metrics import Metrics, metrics_of, strata_of
from castpoi.evaluation.rank_table import IS_REVISIT, RANK, RANK_SCHEMA, fault_of

RANKS: Final = "ranks.parquet"
_METRICS: Final = "metrics.json"

_NEEDS: Final = frozenset(
    {"method", "row", "seed", "part", "known_time", "fingerprint", "seconds"}
    | {"places", "users", "checkins", SHA256}
)
_EVALUATE_AGAIN: Final = "evaluate again with 'castpoi evaluate'"
_ROUNDING: Final = 1e-9
"""Two sums of the same metrics differ by less, in whatever order they are made."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """How one method ranked the targets of one part of a city."""

    ranks: pl.DataFrame
    """One row a target, in canonical order."""
    beyond: BeyondAccuracy
    """Properties of the ten best places of all targets."""
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
        """Whether the method was given the time of each target; compared only with the like."""
        return bool(self.manifest["known_time"])

    @property
    def places(self) -> int:
        """Number of places in the vocabulary."""
        return int(self.manifest["places"])

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
            write_json(staging / _METRICS, {**self.summary(), "beyond": self.beyond.to_dict()})
            write_manifest(staging, self.manifest)

    @classmethod
    def load(cls, folder: Path) -> "Result":
        """Read a result; its metrics are computed anew from its ranks."""
        manifest = read_manifest(folder, kind="result", needs=_NEEDS)
        check_files(folder, manifest, (RANKS, _METRICS))
        ranks, metrics = folder / RANKS, read_json(folder / _METRICS)
        result = cls(
            ranks=read_table(ranks, RANK_SCHEMA, how_to_fix=_EVALUATE_AGAIN),
            beyond=_beyond_of(metrics, folder / _METRICS),
            seconds=float(manifest["seconds"]),
            manifest=manifest,
            name=str(folder),
        )
        fault = fault_of(result.ranks, places=result.places)
        if fault is not None:
            raise BrokenFolder(f"{ranks} is damaged ({fault}); {_EVALUATE_AGAIN}")
        result._check_metrics(metrics["metrics"], folder / _METRICS)
        return result

    def _check_metrics(self, written: Metrics, path: Path) -> None:
        """Refuse ranks that do not give the metrics that were written with them."""
        for name, value in written.items():
            found = self.metrics.get(name)
            if value is not None and found is not None and abs(value - found) > _ROUNDING:
                raise BrokenFolder(
                    f"{path} has {name} {value:.4f}, but the ranks beside it give {found:.4f}; "
                    f"{_EVALUATE_AGAIN}"
                )


def _beyond_of(metrics: dict[str, Any], path: Path) -> BeyondAccuracy:
    try:
        return BeyondAccuracy.from_dict(metrics["beyond"])
    except (KeyError, TypeError) as problem:
        raise BrokenFolder(f"{path} is incomplete ({problem}); {_EVALUATE_AGAIN}") from problem
