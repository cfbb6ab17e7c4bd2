"""Training from Python, in one call: a city in, a recommender out."""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from castpoi.checkins.city import City
from castpoi.core.config import text_of
from castpoi.core.errors import BadInput
from castpoi.core.progress import Progress
from castpoi.library.progress import shown
from castpoi.methods.registry import METHODS
from castpoi.recommend.recommender import Recommender, load
from castpoi.training.job import TrainingOptions
from castpoi.training.train import best_epoch, fit
from castpoi.training.train import train as train_run


def train(
    city: City | str | PathLike[str],
    model: str = METHODS.best.name,
    *,
    seed: int = 42,
    preset: str | None = None,
    holdout: str | None = "test",
    from_run: Recommender | str | PathLike[str] | None = None,
    epochs_from: str | PathLike[str] | None = None,
    out: str | PathLike[str] | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    device: Literal["cpu", "cuda", "mps"] = "cpu",
    settings: Mapping[str, Any] | None = None,
    **more_settings: Any,
) -> Recommender:
    """Train a method on a city, and return it as a recommender.

    `settings` change the preset, and may be given as keywords: `epochs=3`, `threads=1`. The
    model is in memory; with `out`, and a city on disk, it is trained with checkpoints, can be
    resumed after a kill, and is written to that folder.

    `holdout` is the split to predict later, "test" or "validation", which is not used in training.
    With None the method learns from all check-ins, for production, and cannot be evaluated; no
    split selects its epoch, so give `epochs`, or an earlier run with `epochs_from`.

    `from_run` is an earlier model of the method, or its folder: training continues from it, with
    its settings, for one epoch of the check-ins since then. Known places keep their vectors.
    """
    method, progress = METHODS.named(model), progress or shown()
    texts = {name: text_of(value) for name, value in {**(settings or {}), **more_settings}.items()}
    if epochs_from is not None:
        if "epochs" in texts:
            raise BadInput("give epochs or epochs_from, not both")
        texts["epochs"] = best_epoch(Path(epochs_from), method)
    if isinstance(from_run, str | PathLike):
        from_run = load(from_run)
    start = None if from_run is None else from_run.run
    options = TrainingOptions(preset=preset, settings=texts, device=device, start=start)
    folder = city.folder if isinstance(city, City) else Path(city)
    how: dict[str, Any] = {"part": holdout, "seed": seed, "progress": progress, "options": options}
    if out is not None and folder is not None:
        run = train_run(folder, Path(out), method=model, overwrite=overwrite, **how)
    else:
        city = city if isinstance(city, City) else City.load(Path(city))
        run = fit(city, method, **how)
        if out is not None:
            run.save(Path(out), overwrite=overwrite)
    return load(run, city=city)
