"""The biases by distance and age that CaST-POI's reader has learned, from the weights of a run.

`castpoi evaluate` writes them into the manifest of a result, where a report reads them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

from safetensors import SafetensorError, safe_open

from castpoi.core.errors import BrokenFolder
from castpoi.geo.distance import SPATIAL_BIAS_EDGES_KM, TEMPORAL_BIAS_EDGES_HOURS
from castpoi.methods.outline import OURS, Row
from castpoi.methods.run import MODEL
from castpoi.reports.evidence import CityEvidence, Evidence, RowResult

_WEIGHTS: Final = {
    "spatial": "refinement.spatial_bias.weight",
    "temporal": "refinement.temporal_bias.weight",
}
_EDGES: Final = {"spatial": SPATIAL_BIAS_EDGES_KM, "temporal": TEMPORAL_BIAS_EDGES_HOURS}


@dataclass(frozen=True, kw_only=True)
class LearnedBias:
    """One number for each bucket, added to the attention logit of a visit."""

    kind: str
    """`spatial`: km between visit and candidate; `temporal`: hours since the visit."""
    edges: tuple[float, ...]
    values: tuple[float, ...]
    start: tuple[float, ...]
    """Its values before training."""

    @property
    def buckets(self) -> list[str]:
        """Names of the buckets."""
        between = [
            f"{low / unit:g}–{high / unit:g} {name}"
            for low, high in pairwise(self.edges)
            for unit, name in [_unit(self.kind, high)]
        ]
        first, last = (
            f"{edge / unit:g} {name}"
            for edge in (self.edges[0], self.edges[-1])
            for unit, name in [_unit(self.kind, edge)]
        )
        return [f"< {first}", *between, f"≥ {last}"]


def _unit(kind: str, edge: float) -> tuple[float, str]:
    if kind == "spatial":
        return 1.0, "km"
    return (1.0, "h") if edge <= 24 else (24.0, "d")


def biases_of(result: RowResult) -> dict[str, LearnedBias]:
    """The biases of a result by kind; empty where its method has none."""
    return {
        kind: LearnedBias(
            kind=kind,
            edges=tuple(one["edges"]),
            values=tuple(one["values"]),
            start=_start(result, kind, len(one["values"])),
        )
        for kind, one in result.result.manifest.get("learned", {}).items()
    }


def _start(result: RowResult, kind: str, buckets: int) -> tuple[float, ...]:
    """Zeros, or for distance an even slope from near to far (`ModelConfig.spatial_start`)."""
    model = result.trained.get("config", {}).get("model", {})
    is_sloped = kind == "spatial" and model.get("spatial_start") == "near" and buckets > 1
    return tuple(1 - 2 * at / (buckets - 1) if is_sloped else 0.0 for at in range(buckets))


def row_with_biases(evidence: Evidence, city: CityEvidence) -> Row | None:
    """The first of our rows on a city that has learned biases."""
    ours = (row for row in evidence.rows_of(city) if row.role == OURS)
    return next((row for row in ours if any(map(biases_of, city.of(row.name)))), None)


def read_biases(run: Path) -> dict[str, dict[str, Sequence[float]]]:
    """The biases in the weights of a run, for a manifest; empty if it has none."""
    path = run / MODEL
    try:
        with safe_open(path, framework="numpy") as weights:
            present = set(weights.keys())
            return {
                kind: {
                    "edges": list(_EDGES[kind]),
                    "values": [round(float(each), 6) for each in weights.get_tensor(name)],
                }
                for kind, name in _WEIGHTS.items()
                if name in present
            }
    except (OSError, SafetensorError) as problem:
        raise BrokenFolder(
            f"{path} cannot be read ({problem}); train again with 'castpoi train'"
        ) from problem
