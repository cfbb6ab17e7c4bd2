"""Histories as tensors: what the model reads of each visit, and how often it came back.

A place has a *row* in the model's table: its number plus one. Row 0 is padding. Windows are
left-padded, so the last visit always stands in the last slot.

Everything but the age of a visit is a fact of the visit alone (and of the move that led to it),
whatever window it stands in. So the facts are computed once for all visits, and windows gather
them; the age is counted back from the last visit of the window.

Shapes: N visits laid end to end, B histories, T slots of a window, A anchors.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from operator import itemgetter, methodcaller
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from castpoi.checkins.trajectory import Histories, hour_of, local_us, weekday_of
from castpoi.core.errors import BadInput
from castpoi.geo.distance import DISPLACEMENT_EDGES_KM, bucket_of, haversine_km
from castpoi.model.anchors import anchors_of
from castpoi.model.config import REVISIT_WINDOW, ModelConfig
from castpoi.model.distance_buckets import unit_vectors
from castpoi.model.known_pairs import known_pairs
from castpoi.model.next_time import next_times
from castpoi.model.revisits import Revisits, revisits_of

PADDING: Final = 0
"""Row of the model's place table that stands for no place."""

_LAST_HOUR: Final = np.nextafter(np.float32(24), np.float32(0))  # else midnight by rounding


@dataclass(frozen=True, kw_only=True)
class Windows:
    """Left-padded windows of visits."""

    row: Tensor
    """Row of the visited place, 0 where the slot is empty. [B, T]"""
    local_hour: Tensor
    """Local time of day in hours, from 0 to below 24. [B, T]"""
    weekday: Tensor
    """Local day of the week, Monday 0. [B, T]"""
    move_km: Tensor
    """Distance from the visit before; 0 for the first visit of a history. [B, T]"""
    move_bucket: Tensor
    """Displacement bucket of that distance. [B, T]"""
    move_degrees: Tensor
    """Latitude and longitude minus those of the visit before. [B, T, 2]"""
    age_us: Tensor
    """Microseconds from the visit to the last visit of the window. [B, T]"""
    is_real: Tensor
    """Whether a visit stands in the slot. [B, T]"""
    next_time: Tensor | None = None
    """When the next visit was, see `next_time.py`; only of models that know the time. [B, T, 2]"""

    def __len__(self) -> int:
        return len(self.row)

    def split(self, most: int) -> Iterator["Windows"]:
        """The same in parts of at most so many windows; at least one part, if an empty one."""
        for start in range(0, max(len(self), 1), most):
            part = slice(start, start + most)
            yield self._each(itemgetter(part))

    def to(self, device: torch.device) -> "Windows":
        """The same on another device."""
        return self._each(methodcaller("to", device))

    def _each(self, change: Callable[[Tensor], Tensor]) -> "Windows":
        told = {each.name: getattr(self, each.name) for each in fields(self)}
        return Windows(
            **{name: change(column) for name, column in told.items() if column is not None}
        )


@dataclass(frozen=True, kw_only=True)
class HistoryBatch:
    """A batch of histories: the last visits of each, and its counts over a longer window."""

    windows: Windows
    revisits: Revisits
    anchors: Tensor
    """Rows of the places from which distances are measured; 0 for none. [B, A]"""

    def __len__(self) -> int:
        return len(self.windows)

    def to(self, device: torch.device) -> "HistoryBatch":
        """The same on another device."""
        return HistoryBatch(
            windows=self.windows.to(device),
            revisits=self.revisits.to(device),
            anchors=self.anchors.to(device),
        )


@dataclass(frozen=True, kw_only=True)
class VisitFacts:
    """What the model reads of each visit, whatever window it stands in; see `Windows`."""

    row: NDArray[np.int64]
    """[N]"""
    local_hour: NDArray[np.float32]
    """[N]"""
    weekday: NDArray[np.int64]
    """[N]"""
    move_km: NDArray[np.float32]
    """[N]"""
    move_bucket: NDArray[np.int64]
    """[N]"""
    move_degrees: NDArray[np.float32]
    """[N, 2]"""
    at_us: NDArray[np.int64]
    """The moment of the visit, microseconds since 1970 in UTC. [N]"""
    next_time: NDArray[np.int64] | None
    """[N, 2]"""


class BatchBuilder:
    """Turns histories of one city into batches for one model."""

    def __init__(
        self, *, config: ModelConfig, lat: NDArray[np.float64], lon: NDArray[np.float64]
    ) -> None:
        self.config = config
        self.lat = lat
        self.lon = lon
        has_habits = config.revisit_gate and config.revisit_features == "habits"
        self.points = unit_vectors(lat, lon).numpy() if has_habits else None  # [P, 3]

    def build(self, histories: Histories) -> HistoryBatch:
        """The last visits of every history, as many as decide the score."""
        self._check(histories)
        if not self.config.known_time:  # whoever tells it all the same is not listened to
            histories = replace(histories, next_at_us=None)
        # one visit more than is read, for the move that led to the first
        recent = histories.tail(self.config.visits_read + 1)
        visits, is_real = last_visits(recent, self.config.visits_read)
        counted = histories.tail(REVISIT_WINDOW)
        pairs = known_pairs(counted, REVISIT_WINDOW)
        return HistoryBatch(
            windows=windows_of(self.facts(recent), visits, is_real),
            revisits=revisits_of(
                counted, pairs, REVISIT_WINDOW, self.points, known_time=self.config.known_time
            ),
            anchors=torch.from_numpy(anchors_of(counted, pairs)),
        )

    def facts(self, histories: Histories) -> VisitFacts:
        """What the model reads of each visit. [N]"""
        first = histories.bounds[:-1][histories.lengths > 0]
        before = np.roll(histories.place, 1)
        before[first] = histories.place[first]
        lat, lon = self.lat[histories.place], self.lon[histories.place]
        lat_before, lon_before = self.lat[before], self.lon[before]
        move_km = haversine_km(lat_before, lon_before, lat, lon)
        move = np.stack([lat - lat_before, _half_turn(lon - lon_before)], axis=-1)
        local = local_us(histories)
        return VisitFacts(
            row=histories.place + 1,
            local_hour=np.minimum(hour_of(local), _LAST_HOUR).astype(np.float32),
            weekday=weekday_of(local),
            move_km=move_km.astype(np.float32),
            move_bucket=bucket_of(move_km, DISPLACEMENT_EDGES_KM).astype(np.int64),
            move_degrees=move.astype(np.float32),
            at_us=histories.at_us,
            next_time=next_times(histories) if self.config.known_time else None,
        )

    def _check(self, histories: Histories) -> None:
        outside = (histories.place < 0) | (histories.place >= len(self.lat))
        if outside.any():
            raise BadInput(
                f"a history visits place {histories.place[outside][0]}, but the model knows "
                f"places 0 to {len(self.lat) - 1}; encode histories of the city it was made for"
            )
        if self.config.known_time and histories.next_at_us is None:
            raise BadInput(
                "the model was trained with known_time=true, and nobody tells it the moment of the "
                "visit to come; give histories with next_at_us, or train without --known-time"
            )


def windows_of(facts: VisitFacts, visits: NDArray[np.int64], is_real: NDArray[np.bool_]) -> Windows:
    """Windows of the given visits; the last slot must hold the last visit. [B, T] -> windows"""

    def gather(column: NDArray[np.generic]) -> Tensor:
        slots = np.zeros((*visits.shape, *column.shape[1:]), dtype=column.dtype)
        slots[is_real] = column[visits[is_real]]
        return torch.from_numpy(slots)

    at_us, real = gather(facts.at_us), torch.from_numpy(is_real)
    return Windows(
        row=gather(facts.row),
        local_hour=gather(facts.local_hour),
        weekday=gather(facts.weekday),
        move_km=gather(facts.move_km),
        move_bucket=gather(facts.move_bucket),
        move_degrees=gather(facts.move_degrees),
        age_us=(at_us[:, -1:] - at_us).clamp(min=0) * real,
        is_real=real,
        next_time=None if facts.next_time is None else gather(facts.next_time),
    )


def last_visits(histories: Histories, most: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Indices of the last visits, left-padded to the longest history, and which are real. [B, T]

    There is always one slot, even if all histories are empty.
    """
    longest = int(histories.lengths.max(initial=0))
    slots = np.arange(-min(max(longest, 1), most), 0)
    visits = histories.bounds[1:, None] + slots
    is_real = visits >= histories.bounds[:-1, None]
    return np.where(is_real, visits, 0), is_real


def _half_turn(degrees: NDArray[np.float64]) -> NDArray[np.float64]:
    """A difference of longitudes the short way round, in [-180, 180)."""
    return (degrees + 180.0) % 360.0 - 180.0
