"""Continuing from a run: a new model takes over the weights of an earlier one, place by place.

The vectors of known places follow their ids; a closed place is left out. A new place starts with
the mean of the known places most similar to it, near ones and rather of its own category.

Shapes: P places, K known places, M new places, D width.
"""

from typing import Any, Final

import numpy as np
import torch

from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.checkins.similar import most_similar
from castpoi.core.errors import BadInput
from castpoi.methods.run import Run
from castpoi.model.castpoi import CastPoi
from castpoi.model.places import WEIGHTS_OF_PLACES

NEAREST: Final = 8
"""Known places whose mean is the start of a new place."""


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
    nearest = most_similar(city.places[new], city.places[known], NEAREST)
    similar = torch.from_numpy(known[nearest])  # [M, NEAREST]
    weights = earlier.state_dict()
    for name, weight in model.state_dict().items():
        if name in WEIGHTS_OF_PLACES:
            own, learned = weight[-len(is_new) :], weights[name][-len(before) :]  # [P, ...]
            own[known] = learned[rows]
            own[new] = own[similar].mean(dim=1)
        else:
            weight.copy_(weights[name])
