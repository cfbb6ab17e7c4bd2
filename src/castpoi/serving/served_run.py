"""The run that answers now, and how another takes its place while requests go on."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import numpy as np

from castpoi.core.errors import BadScores, BrokenFolder, ModelNotReady
from castpoi.core.files import is_folder_of, read_json, read_manifest
from castpoi.methods.run import Run
from castpoi.recommend.recommender import Recommender
from castpoi.recommend.scores import PlaceScorer
from castpoi.serving.tried_histories import made_up

_RESULTS: Final = "results"
_METRICS: Final = "*/metrics.json"


class ServedRun:
    """A recommender that can be replaced: whoever holds the former one finishes with it."""

    def __init__(self, load: Callable[[], Recommender]) -> None:
        self._load = load
        self._current: tuple[Recommender, dict[str, Any]] | None = None

    @property
    def current(self) -> Recommender:
        """The recommender of this moment."""
        return self._ready()[0]

    @property
    def card(self) -> dict[str, Any]:
        """Which model answers at this moment, and where it comes from."""
        return self._ready()[1]

    def load(self, finish: Callable[[Recommender], Recommender] | None = None) -> Recommender:
        """Read the run anew and let it answer from now on; if that fails the former one stays.

        What `finish` makes of the new recommender is what answers. `Service` loads in turns.
        """
        recommender = self._load()
        check_scores(recommender)
        if finish is not None:
            recommender = finish(recommender)
        _ = recommender.places.number_of  # built before the first request, not within it
        self._current = recommender, model_card(recommender)
        return recommender

    def _ready(self) -> tuple[Recommender, dict[str, Any]]:
        if self._current is None:
            raise ModelNotReady("the service is still loading its run; ask again in a moment")
        return self._current


def check_scores(recommender: Recommender) -> None:
    """Score every place after one made-up history; refuse a run with scores that are not finite."""
    places = recommender.places
    (probe,) = made_up(places, 1, np.random.default_rng(0))
    probe = replace(probe, next_at_us=int(probe.at_us[-1]))  # a model of known time needs one
    everywhere = np.ones(len(places), dtype=np.bool_)
    try:
        PlaceScorer(recommender.run.ranker, places).score([probe], [everywhere], [1])
    except BadScores as problem:
        raise BrokenFolder(f"{recommender.run.folder} cannot be served: {problem}") from problem


def model_card(recommender: Recommender) -> dict[str, Any]:
    """Which model answers, where it comes from and how well it is known to do."""
    run, manifest = recommender.run, recommender.run.manifest
    return {
        "model": recommender.model,
        "method": run.method,
        "seed": run.seed,
        "fingerprint": run.fingerprint,
        "model_sha256": run.model_sha256,
        "places": len(recommender.places),
        "private_categories": list(recommender.private_categories),
        "private_places": int(recommender.is_private.sum()),
        "shortlist": recommender.shortlist.to_dict(),
        "visits_by": recommender.visits_by,
        "known_time": recommender.known_time,
        "settings": run.ranker.config,
        "trained_utc": manifest.get("ended_utc"),
        "versions": manifest.get("versions", {}),
        "commit": manifest.get("commit"),
        "metrics": _metrics_of(run),
    }


def _metrics_of(run: Run) -> dict[str, float | None] | None:
    """The metrics of a result beside the run that says it is of this very run."""
    home = run.folder.resolve()
    results = home.parent / _RESULTS
    for metrics_file in sorted([*home.parent.glob(_METRICS), *results.glob(_METRICS)]):
        try:
            manifest = read_manifest(metrics_file.parent, kind="result")
            metrics: dict[str, float | None] = read_json(metrics_file)["metrics"]
        except (BrokenFolder, KeyError):
            continue
        # a demo keeps its run and the results of all methods in one folder
        is_demo = is_folder_of(home.parent, "demo") and metrics_file.is_relative_to(results)
        same = all(manifest.get(word) == run.manifest[word] for word in ("method", "fingerprint"))
        # another run may have been trained in the same folder since
        began = (manifest.get("trained") or {}).get("started_utc")
        is_of_run = manifest.get("run") == str(home) and began == run.manifest.get("started_utc")
        if same and (is_of_run or is_demo) and manifest.get("part") == "test":
            return metrics
    return None
