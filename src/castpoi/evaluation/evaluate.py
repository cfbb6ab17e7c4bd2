"""Evaluation: every target of a part is ranked among all places of the city."""

from collections.abc import Mapping
from typing import Any

from castpoi.checkins.city import City
from castpoi.errors import BrokenFolder, TooFewCheckins
from castpoi.evaluation.rank_table import rank_table
from castpoi.evaluation.ranking import rank_targets
from castpoi.evaluation.result import Result
from castpoi.progress import Progress
from castpoi.provenance import Stopwatch
from castpoi.ranker import Ranker


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
    """Rank all targets of a part; `origin` (city, run, command) is noted in the manifest."""
    if ranker.places != city.places.height:
        raise BrokenFolder(
            f"{method} knows {ranker.places:,} places, but the city has {city.places.height:,}; "
            "evaluate it on the city it was trained on"
        )
    rows = city.targets(part)
    if not len(rows):
        raise TooFewCheckins(
            f"the {part} part of the city has no check-ins to foretell; choose another --part or "
            "prepare the city with a split that has one"
        )
    work = Stopwatch()
    ranks = rank_targets(ranker, city.trajectories, rows, method=method, progress=progress)
    seconds = work.seconds
    table = rank_table(city, rows, ranks)
    manifest = {
        "kind": "result",
        "method": method,
        "seed": seed,
        "fingerprint": city.fingerprint,
        "part": part,
        "targets": table.height,
        "seconds": round(seconds, 3),
        **(origin or {}),
        **work.provenance(),
    }
    return Result(ranks=table, seconds=seconds, manifest=manifest)
