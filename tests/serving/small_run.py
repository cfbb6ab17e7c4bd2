"""A CaST-POI run of the small city with random weights, and histories for it."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import load_file, save_file

from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.core.provenance import Stopwatch
from castpoi.methods.run import Run, new_run, places_of
from castpoi.model.castpoi import new_model
from castpoi.model.ranker import CastPoiRanker
from castpoi.model.windows import BatchBuilder
from castpoi.recommend.places import PlaceBook
from castpoi.recommend.request import Visit
from tests.contract import odd_city
from tests.manifests import accept_changes
from tests.model.small import small_config

DAY = [
    Visit("station", "2012-04-03T08:00:00-04:00"),
    Visit("cafe", "2012-04-03T08:30:00-04:00"),
    Visit("office", "2012-04-03T09:00:00-04:00"),
    Visit("cafe", "2012-04-03T12:30:00-04:00"),
    Visit("office", "2012-04-03T13:30:00-04:00"),
    Visit("park", "2012-04-03T19:00:00-04:00"),
    Visit("station", "2012-04-03T22:00:00-04:00"),
]
"""A day of a person who is not in the city."""

OUR_PARTS = {
    "distance_gate": True,
    "revisit_features": "habits",
    "deep_revisits": True,
}
"""Parts that the paper's model does not have."""


def small_ranker(city: City, **changes: Any) -> CastPoiRanker:
    """A model whose weights are all random, none of them zero as before training."""
    config = small_config(**changes)
    lat, lon = city.places[record.LAT].to_numpy(), city.places[record.LON].to_numpy()
    model = new_model(config=config, lat=lat, lon=lon, seed=3)
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.3)
        model.place.weight[0] = 0.0
    return CastPoiRanker(model, BatchBuilder(config=config, lat=lat, lon=lon))


def small_run(folder: Path, **changes: Any) -> Path:
    """Write the small city to folder/city and a run of it to folder/run; the latter."""
    city, run = odd_city(), folder / "run"
    city.save(folder / "city")
    run_of(city, folder=folder / "city", **changes).save(run)
    return run


def run_of(city: City, folder: Path | None = None, **changes: Any) -> Run:
    """A run of a city, and its folder, with random weights."""
    return new_run(
        small_ranker(city, **changes),
        method="castpoi",
        seed=3,
        part=record.TEST,
        knows=[record.TRAIN],
        city=folder,
        fingerprint=city.fingerprint,
        places=places_of(city, [record.TRAIN]),
        work=Stopwatch(),
    )


def spoil_weights(run: Path) -> None:
    """Replace all popularities of a run by NaN, and the hash of its model by the new one."""
    arrays = dict(load_file(run / "model.safetensors"))
    arrays["popularity"] = np.full_like(arrays["popularity"], np.nan)
    save_file(arrays, run / "model.safetensors")
    accept_changes(run)


def small_book() -> PlaceBook:
    """The places of the small city."""
    return PlaceBook.of(places_of(odd_city(), [record.TRAIN]))
