"""Continuing from a run: a new model takes over the weights of an earlier one, place by place.

The vectors of known places follow their ids; a closed place is left out. A new place starts with
the mean of its nearest known places, of its own category if there are any. A model with shared
vectors has those of the traits that both cities have, and a new place starts with these alone.

Shapes: P places, K known places, M new places, D width.
"""

from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.core.arrays import Numbers
from castpoi.core.errors import BadInput
from castpoi.methods.run import Run
from castpoi.model.castpoi import CastPoi
from castpoi.model.distances import unit_vectors
from castpoi.model.places import SharedVectors

NEAREST: Final = 8
"""Known places whose mean is the start of a new place."""

_OF_PLACES: Final = {"place.weight", "popularity", "forecast.popularity"}  # the first row: padding
_AT_ONCE: Final = 2**24  # products of points


def check_places(run: Run, city: City) -> None:
    """Refuse a city that has none of the places of a run."""
    if not city.places[record.PLACE_ID].is_in(run.places[record.PLACE_ID].implode()).any():
        raise BadInput(
            f"the city has none of the {run.places.height:,} places of {run.name}, so there is "
            "nothing to continue; give a city with the same place ids, or train without --from"
        )


@torch.no_grad()
def take_over(model: CastPoi, run: Run, city: City) -> None:
    """Set the weights of a new model of a city to those of a run, in place."""
    ranker: Any = run.ranker
    earlier: CastPoi = ranker.model
    before = run.places.select(record.PLACE_ID, before=record.PLACE)
    number = city.places.join(before, on=record.PLACE_ID, how="left", maintain_order="left")
    is_new = number["before"].is_null().to_numpy()  # [P]
    known, new = np.flatnonzero(~is_new), np.flatnonzero(is_new)
    rows = torch.from_numpy(number["before"].drop_nulls().to_numpy().astype(np.int64))  # [K]
    similar = _most_similar(city, new, known)  # [M, NEAREST]
    weights = earlier.state_dict()
    for name, weight in model.state_dict().items():
        if name in _OF_PLACES:
            weight[0], own = weights[name][0], weight[1:]  # [P, ...]
            own[known] = weights[name][1:][rows]
            own[new] = own[similar].mean(dim=1) if model.shared is None else 0.0
        elif not name.startswith("shared."):
            weight.copy_(weights[name])
    if model.shared is not None and earlier.shared is not None:
        _take_over_traits(model.shared, earlier.shared)


def _take_over_traits(shared: SharedVectors, earlier: SharedVectors) -> None:
    """The shared vectors of the traits that both have."""
    row_of = {trait: row for row, trait in enumerate(earlier.traits.names())}
    pairs = [
        (row, row_of[trait]) for row, trait in enumerate(shared.traits.names()) if trait in row_of
    ]
    rows, before = torch.tensor(pairs).unbind(dim=1)
    shared.vectors[rows] = earlier.vectors[before]
    shared.popularity[rows] = earlier.popularity[before]


def _most_similar(city: City, new: Numbers, known: Numbers) -> Tensor:
    """The nearest known places of each new place, those of its category first. [M, NEAREST]"""
    points = unit_vectors(city.lat, city.lon)  # [P, 3]
    category = city.places[record.CATEGORY].fill_null("").rank("dense").to_numpy()  # [P]
    count = min(NEAREST, len(known))
    found = [
        np.argpartition(
            # half the squared chord, which is at most 2, or that of the next category
            2.0 * (category[some, None] != category[known]) - points[some] @ points[known].T,
            count - 1,
        )[:, :count]
        for some in np.array_split(new, 1 + len(new) * len(known) // _AT_ONCE)
    ]  # [m, NEAREST] each
    return torch.from_numpy(known[np.concatenate(found)])
