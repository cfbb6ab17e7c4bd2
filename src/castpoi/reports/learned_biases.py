"""What CaST-POI has learned about distance and age: the two biases in its reader's attention.

A result may carry them in its manifest (`learned`); else they are read from the weights of its run,
where these are still there.
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
from castpoi.reports.evidence import CityEvidence, Evidence
from castpoi.reports.finding import Finding

_WEIGHTS: Final = {
    "spatial": "refinement.spatial_bias.weight",
    "temporal": "refinement.temporal_bias.weight",
}
_EDGES: Final = {"spatial": SPATIAL_BIAS_EDGES_KM, "temporal": TEMPORAL_BIAS_EDGES_HOURS}


@dataclass(frozen=True, kw_only=True)
class LearnedBias:
    """One scalar a bucket, added where the reader weighs a visit."""

    kind: str
    """`spatial`: km between visit and candidate; `temporal`: hours since the visit."""
    edges: tuple[float, ...]
    values: tuple[float, ...]
    start: tuple[float, ...]
    """What it was before anything was learned."""

    @property
    def buckets(self) -> list[str]:
        """The buckets in words."""
        between = [
            f"{low / unit:g}–{high / unit:g} {word}"
            for low, high in pairwise(self.edges)
            for unit, word in [_unit(self.kind, high)]
        ]
        first, last = (
            f"{edge / unit:g} {word}"
            for edge in (self.edges[0], self.edges[-1])
            for unit, word in [_unit(self.kind, edge)]
        )
        return [f"< {first}", *between, f"≥ {last}"]


def biases_of(finding: Finding) -> dict[str, LearnedBias]:
    """The biases behind a result, by kind; empty where the method has none or they are gone."""
    told = finding.result.manifest.get("learned")
    if told is None and finding.weights_folder is not None:
        told = read_biases(finding.weights_folder)
    return {
        kind: LearnedBias(
            kind=kind,
            edges=tuple(one["edges"]),
            values=tuple(one["values"]),
            start=_start(finding, kind, len(one["values"])),
        )
        for kind, one in (told or {}).items()
    }


def _start(finding: Finding, kind: str, buckets: int) -> tuple[float, ...]:
    """Nothing, or for distance an even slope from near to far (`ModelConfig.spatial_start`)."""
    model = finding.trained.get("config", {}).get("model", {})
    is_sloped = kind == "spatial" and model.get("spatial_start") == "near" and buckets > 1
    return tuple(1 - 2 * at / (buckets - 1) if is_sloped else 0.0 for at in range(buckets))


def row_with_biases(evidence: Evidence, city: CityEvidence) -> Row | None:
    """The first of our rows whose reader's biases are at hand on a city."""
    ours = (row for row in evidence.rows_of(city) if row.role == OURS)
    told = (row for row in ours if any(map(biases_of, city.of(row.name))))
    return next(told, None)


def read_biases(run: Path) -> dict[str, dict[str, Sequence[float]]]:
    """The biases in the weights of a run, as a manifest may hold them; empty if it has none."""
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


def _unit(kind: str, edge: float) -> tuple[float, str]:
    """The unit that suits an edge, and its word."""
    if kind == "spatial":
        return 1.0, "km"
    return (1.0, "h") if edge <= 24 else (24.0, "d")
