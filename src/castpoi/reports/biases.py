"""The biases by distance and age that CaST-POI's reader has learned.

`castpoi evaluate` writes them into the manifest of a result.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from castpoi.reports.evidence import RowResult


@dataclass(frozen=True, kw_only=True)
class LearnedBias:
    """One number for each bucket, added to the attention logit of a visit."""

    kind: str  # `spatial`: km between visit and candidate; `temporal`: hours since the visit
    edges: Sequence[float]
    values: Sequence[float]
    is_sloped: bool  # whether it started at 1 near to -1 far (`ModelConfig.spatial_start`), not 0

    @property
    def start(self) -> list[float]:
        """Its values before training."""
        last = max(1, len(self.values) - 1)
        return [1 - 2 * at / last if self.is_sloped else 0.0 for at in range(len(self.values))]

    @property
    def buckets(self) -> list[str]:
        """Names of the buckets."""
        units = [self._unit(edge) for edge in self.edges]
        edges = list(zip(self.edges, units, strict=True))
        between = [
            f"{low / size:g}–{high / size:g} {name}"
            for (low, _), (high, (size, name)) in pairwise(edges)
        ]
        first, last = (f"{edge / size:g} {name}" for edge, (size, name) in (edges[0], edges[-1]))
        return [f"< {first}", *between, f"≥ {last}"]

    def _unit(self, edge: float) -> tuple[float, str]:
        if self.kind == "spatial":
            return 1.0, "km"
        return (1.0, "h") if edge <= 24 else (24.0, "d")


def biases_of(result: RowResult) -> dict[str, LearnedBias]:
    """The biases of a result by kind; empty where its method has none."""
    model = result.trained.get("config", {}).get("model", {})
    return {
        kind: LearnedBias(
            kind=kind,
            edges=one["edges"],
            values=one["values"],
            is_sloped=kind == "spatial" and model.get("spatial_start") == "near",
        )
        for kind, one in result.result.manifest.get("learned", {}).items()
    }
