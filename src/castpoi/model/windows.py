"""Histories as padded windows of visits: the inputs of the token encoder.

A window is left-padded: the last visit is always in the last slot. An empty slot has the place
NO_PLACE.

All features but the age of a visit depend on the visit (and the move that led to it) and not on the
window. So they are computed once for all visits, and windows gather them; the age is counted back
from the last visit of the window.

Shapes: N visits laid end to end, B histories, T slots of a window, A anchors.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from castpoi.checkins.record import DAY_US, HOUR_US
from castpoi.checkins.trajectory import Histories, hour_of, is_weekend, local_us, weekday_of
from castpoi.core.arrays import pad_left
from castpoi.core.errors import BadInput
from castpoi.geo.distance import (
    DISPLACEMENT_EDGES_KM,
    TEMPORAL_BIAS_EDGES_HOURS,
    bucket_of,
    haversine_km,
    unit_vectors,
)
from castpoi.model.config import REVISIT_WINDOW, ModelConfig
from castpoi.model.features.known import KnownPlaces, known_at_the_end
from castpoi.model.layers import Tensors
from castpoi.model.places import NO_PLACE

_LAST_HOUR: Final = np.nextafter(np.float32(24), np.float32(0))  # else midnight by rounding


@dataclass(frozen=True, kw_only=True)
class Windows(Tensors):
    """Left-padded windows of visits."""

    place: Tensor  # NO_PLACE in an empty slot [B, T]
    local_hour: Tensor  # local time of day in hours, from 0 to below 24 [B, T]
    weekday: Tensor  # local day of the week, Monday 0 [B, T]
    move_km: Tensor  # distance from the visit before; 0 for the first visit of a history [B, T]
    move_bucket: Tensor  # displacement bucket of that distance [B, T]
    move_degrees: Tensor  # latitude and longitude minus those of the visit before [B, T, 2]
    age_us: Tensor  # microseconds from the visit to the last visit of the window [B, T]
    is_real: Tensor  # whether the slot has a visit [B, T]
    next_time: Tensor | None = None  # see `next_times`; None if not known [B, T, 2]

    def __len__(self) -> int:
        return len(self.place)

    def split(self, most: int) -> Iterator["Windows"]:
        """Parts of at most `most` windows; at least one part, even if it is empty."""
        for start in range(0, max(len(self), 1), most):
            yield self.map(itemgetter(slice(start, start + most)))


@dataclass(frozen=True, kw_only=True)
class HistoryBatch(Tensors):
    """A batch of histories: the last visits of each, and counts over a longer window."""

    windows: Windows
    known: KnownPlaces
    anchors: Tensor  # places from which distances are measured, or NO_PLACE [B, A]

    def __len__(self) -> int:
        return len(self.windows)


VisitFeatures = Mapping[str, NDArray[Any]]
"""The columns of `Windows` that do not depend on the window, and `at_us`. [N, ...] each"""


class BatchBuilder:
    """Turns histories of one city into batches for one model."""

    def __init__(
        self, *, config: ModelConfig, lat: NDArray[np.float64], lon: NDArray[np.float64]
    ) -> None:
        self.config = config
        self.lat = lat
        self.lon = lon
        has_habits = config.revisit_gate and config.revisit_features == "habits"
        self.points = unit_vectors(lat, lon) if has_habits else None  # [P, 3]

    def build(self, histories: Histories) -> HistoryBatch:
        """The last visits of every history, as many as the score depends on."""
        self._check(histories)
        if not self.config.known_time:
            histories = replace(histories, next_at_us=None)
        # one visit more than is read, for the move that led to the first
        recent = histories.tail(self.config.visits_read + 1)
        visits, is_real = pad_left(
            recent.bounds[:-1], recent.bounds[1:], most=self.config.visits_read
        )
        known = known_at_the_end(histories.tail(REVISIT_WINDOW), self.points)
        return HistoryBatch(
            windows=windows_of(self.features(recent), visits, is_real),
            known=known.tensors(),
            anchors=torch.from_numpy(np.stack([histories.last_place, known.home], axis=1)),
        )

    def features(self, histories: Histories) -> VisitFeatures:
        """The features of each visit. [N]"""
        first = histories.bounds[:-1][histories.lengths > 0]
        before = np.roll(histories.place, 1)
        before[first] = histories.place[first]
        lat, lon = self.lat[histories.place], self.lon[histories.place]
        lat_before, lon_before = self.lat[before], self.lon[before]
        move_km = haversine_km(lat_before, lon_before, lat, lon)
        east = (lon - lon_before + 180.0) % 360.0 - 180.0  # the short way round the Earth
        local = local_us(histories)
        features: dict[str, NDArray[Any]] = {
            "place": histories.place,
            "local_hour": np.minimum(hour_of(local), _LAST_HOUR).astype(np.float32),
            "weekday": weekday_of(local),
            "move_km": move_km.astype(np.float32),
            "move_bucket": bucket_of(move_km, DISPLACEMENT_EDGES_KM).astype(np.int64),
            "move_degrees": np.stack([lat - lat_before, east], axis=-1).astype(np.float32),
            "at_us": histories.at_us,
        }
        known = histories.next_at_us is not None
        return features | {"next_time": next_times(histories)} if known else features

    def _check(self, histories: Histories) -> None:
        outside = (histories.place < 0) | (histories.place >= len(self.lat))
        if outside.any():
            raise BadInput(
                f"a history visits place {histories.place[outside][0]}, but the model has "
                f"places 0 to {len(self.lat) - 1}; encode histories of the city it was made for"
            )
        if self.config.known_time and histories.next_at_us is None:
            raise BadInput(
                "the model was trained with known_time=true and needs the time of the next visit; "
                "give histories with next_at_us, or train without --known-time"
            )


def windows_of(
    features: VisitFeatures, visits: NDArray[np.int64], is_real: NDArray[np.bool_]
) -> Windows:
    """Windows of the given visits; the last slot must have the last visit. [B, T] -> windows"""

    def gather(column: NDArray[Any], empty: int) -> Tensor:
        slots = np.full((*visits.shape, *column.shape[1:]), empty, dtype=column.dtype)
        slots[is_real] = column[visits[is_real]]
        return torch.from_numpy(slots)

    columns = {
        name: gather(column, NO_PLACE if name == "place" else 0)
        for name, column in features.items()
    }
    at_us, real = columns.pop("at_us"), torch.from_numpy(is_real)
    age_us = (at_us[:, -1:] - at_us).clamp(min=0) * real  # [B, T]
    return Windows(**columns, age_us=age_us, is_real=real)


def next_times(visits: Histories) -> NDArray[np.int64]:
    """Hour of the next visit, 24 to 47 on a weekend, and bucket of the time until then. [N, 2]

    On the clock of the visit itself; see `tokens.py`.
    """
    next_us = visits.following_us
    local = local_us(visits, next_us)
    hour = local % DAY_US // HOUR_US + 24 * is_weekend(local)
    wait = bucket_of(np.maximum(next_us - visits.at_us, 0) / HOUR_US, TEMPORAL_BIAS_EDGES_HOURS)
    return np.stack([hour, wait], axis=-1).astype(np.int64)
