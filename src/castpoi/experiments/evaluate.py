"""Results of a run or of a counting baseline, with their origin in the manifest."""

from collections.abc import Mapping
from typing import Any, Final

from castpoi.checkins.city import City
from castpoi.core.errors import BadInput
from castpoi.core.progress import SILENCE, Progress
from castpoi.evaluation.evaluate import evaluate
from castpoi.evaluation.result import Result
from castpoi.geo.distance import SPATIAL_BIAS_EDGES_KM, TEMPORAL_BIAS_EDGES_HOURS
from castpoi.methods.registry import METHODS
from castpoi.methods.run import Run
from castpoi.training.train import fit

_BIASES: Final = {
    "spatial": ("reader.spatial_bias.weight", SPATIAL_BIAS_EDGES_KM),
    "temporal": ("reader.temporal_bias.weight", TEMPORAL_BIAS_EDGES_HOURS),
}
_OF_TRAINING: Final = ("commit", "started_utc", "wall_seconds", "peak_memory_mb")


def evaluate_run(
    run: Run, city: City, *, part: str, progress: Progress = SILENCE, **origin: object
) -> Result:
    """Rank every target of a city by a run; the result may be kept longer than the run."""
    run.check_may_predict(part)
    kept = {name: run.manifest[name] for name in _OF_TRAINING if name in run.manifest}
    about: dict[str, Any] = {
        **_folders(run=run, city=city),
        "row": run.row,
        "trained": {"config": run.ranker.config, **kept},
    }
    if learned := _learned_biases(run.ranker.arrays):
        about["learned"] = learned
    return evaluate(
        run.ranker,
        city,
        method=run.method,
        seed=run.seed,
        part=part,
        origin={**about, **origin},
        progress=progress,
    )


def evaluate_counted(
    name: str, city: City, *, part: str, progress: Progress = SILENCE, **origin: object
) -> Result:
    """Fit a counting baseline and rank every target; `origin` is added to the manifest."""
    method = METHODS.named(name)
    if method.needs_training:
        raise BadInput(
            f"{name} needs training; first 'castpoi train {city.folder or 'CITY'} --model {name} "
            "--out RUN', then 'castpoi evaluate RUN'"
        )
    ranker = fit(city, method, part=part, progress=progress).ranker
    about = {**_folders(city=city), **origin}
    return evaluate(ranker, city, method=name, part=part, origin=about, progress=progress)


def _folders(**things: Run | City) -> dict[str, str]:
    """The folders of the run and the city, where they are on disk."""
    return {
        name: str(thing.folder.resolve())
        for name, thing in things.items()
        if thing.folder is not None
    }


def _learned_biases(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """The biases by distance and age of CaST-POI's reader, which reports show."""
    return {
        kind: {"edges": list(edges), "values": [round(float(each), 6) for each in arrays[weights]]}
        for kind, (weights, edges) in _BIASES.items()
        if weights in arrays
    }
