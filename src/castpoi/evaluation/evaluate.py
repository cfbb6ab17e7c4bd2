"""Evaluation: rank every target of a split among all places of the city."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins.city import City
from castpoi.core.errors import BrokenFolder, TooFewCheckins
from castpoi.core.progress import Progress
from castpoi.core.provenance import Stopwatch
from castpoi.evaluation.beyond import beyond_accuracy
from castpoi.evaluation.ranking import TopPlaces, mid_ranks, scored_blocks, top_places
from castpoi.evaluation.result import Result, rank_table
from castpoi.methods.ranker import Ranker, abilities_of


def evaluate(
    ranker: Ranker[Any],
    city: City,
    *,
    method: str,
    seed: int = 0,
    part: str = "test",
    origin: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Result:
    """Rank all targets of a split; `origin` (row, city, run, command) is added to the manifest."""
    if ranker.places != city.places.height:
        raise BrokenFolder(
            f"{method} ranks {ranker.places:,} places, but the city has {city.places.height:,}; "
            "evaluate it on the city it was trained on"
        )
    rows = city.targets(part)
    if not len(rows):
        raise TooFewCheckins(
            f"the {part} split of the city has no targets; choose another --split or "
            "prepare the city with a split that has some"
        )
    work = Stopwatch()
    ranks, best = _rank(ranker, city, rows, method=method, progress=progress)
    seconds = work.seconds
    manifest = {
        "kind": "result",
        "method": method,
        "seed": seed,
        "fingerprint": city.fingerprint,
        "part": part,
        "split": city.manifest.get("split", "leave-one-out"),
        "known_time": abilities_of(ranker).needs_next_time,
        "targets": len(rows),
        "places": city.places.height,
        "users": city.users.height,
        "checkins": city.checkins.height,
        "row": {"method": method, "preset": None, "settings": {}},
        "seconds": round(seconds, 3),
        **(origin or {}),
        **work.provenance(),
    }
    return Result(
        ranks=rank_table(city, rows, ranks),
        beyond=beyond_accuracy(city, rows, best),
        seconds=seconds,
        manifest=manifest,
    )


def _rank(
    ranker: Ranker[Any],
    city: City,
    rows: NDArray[np.int64],
    *,
    method: str,
    progress: Progress | None,
) -> tuple[NDArray[np.float64], TopPlaces]:
    """Rank of every target and the best places, in one pass over the scores. [N], [N, K]"""
    blocks = [
        (mid_ranks(scores, targets, method=method), top_places(scores))
        for scores, targets in scored_blocks(
            ranker, city.trajectories, rows, method=method, progress=progress
        )
    ]
    best = TopPlaces(
        place=np.concatenate([best.place for _, best in blocks]),
        softmax=np.concatenate([best.softmax for _, best in blocks]),
    )
    return np.concatenate([ranks for ranks, _ in blocks]), best
