"""The token encoder: which place, at what local time, after what move.

    x_i = W_in [ e_place ; e_time(t_i) ; e_geo(l_{i-1}, l_i) ]  ( + e_position_i ) ( + e_next_i )

The position is added here only if positions are absolute; else the backbone knows the order. The
last one is ours: when the next visit is, of a model that knows it (`next_time.py`).

Shapes: B histories, T slots, D width.
"""

import math
from typing import Final

import torch
from torch import Tensor, nn

from castpoi.core.errors import BadInput
from castpoi.geo.distance import DISPLACEMENT_EDGES_KM
from castpoi.model.batch import Windows
from castpoi.model.config import ModelConfig
from castpoi.model.dropout import Dropout
from castpoi.model.next_time import NextTime

SMALL_TABLE_STD: Final = 0.02
"""Spread of small learned tables at the start."""

_SLOT_HOURS: Final = 6  # night, morning, afternoon, evening
_DEGREES_SCALE: Final = 0.1  # of the order of a long move within a city
_PERIODIC_FEATURES: Final = 4
_SLOT_WIDTH: Final = 16
_MOVE_BUCKET_WIDTH: Final = 16


class TimeEncoder(nn.Module):
    """Local hour and weekday as points on two circles, and the part of the day as a vector."""

    def __init__(self) -> None:
        super().__init__()
        self.slot = small_table(24 // _SLOT_HOURS, _SLOT_WIDTH)
        self.width = _PERIODIC_FEATURES + _SLOT_WIDTH

    def forward(self, local_hour: Tensor, weekday: Tensor) -> Tensor:
        """What time it was. [B, T], [B, T] -> [B, T, 4 + 16]"""
        hour_angle = local_hour * (2 * math.pi / 24)
        weekday_angle = weekday * (2 * math.pi / 7)
        circles = torch.stack(
            [hour_angle.sin(), hour_angle.cos(), weekday_angle.sin(), weekday_angle.cos()], dim=-1
        )  # [B, T, 4]
        slot = self.slot((local_hour / _SLOT_HOURS).long())  # [B, T, slot_width]
        return torch.cat([circles, slot], dim=-1)


class MoveEncoder(nn.Module):
    """How far and in which direction the last move went."""

    width: Final = 32

    def __init__(self) -> None:
        super().__init__()
        self.bucket = small_table(len(DISPLACEMENT_EDGES_KM) + 1, _MOVE_BUCKET_WIDTH)
        features = 1 + _MOVE_BUCKET_WIDTH + 2
        self.mix = nn.Sequential(
            nn.Linear(features, self.width), nn.ReLU(), nn.Linear(self.width, self.width)
        )

    def forward(self, move_km: Tensor, move_bucket: Tensor, move_degrees: Tensor) -> Tensor:
        """The move that led to each visit. [B, T], [B, T], [B, T, 2] -> [B, T, width]"""
        far = move_km.log1p().unsqueeze(-1)  # [B, T, 1]
        mixed: Tensor = self.mix(
            torch.cat([far, self.bucket(move_bucket), move_degrees / _DEGREES_SCALE], dim=-1)
        )
        return mixed


class TokenEncoder(nn.Module):
    """Turns each visit into one vector; empty slots become zero."""

    def __init__(self, *, config: ModelConfig) -> None:
        super().__init__()
        self.time = TimeEncoder()
        self.move = MoveEncoder()
        self.mix = nn.Linear(config.width + self.time.width + self.move.width, config.width)
        self.position = (
            small_table(config.window, config.width) if config.positions == "absolute" else None
        )
        self.next_time = NextTime(config=config) if config.known_time else None
        self.dropout = Dropout(config.dropout)

    def forward(self, place: Tensor, windows: Windows) -> Tensor:
        """One vector a visit. [B, T, D], windows -> [B, T, D]"""
        time = self.time(windows.local_hour, windows.weekday)
        move = self.move(windows.move_km, windows.move_bucket, windows.move_degrees)
        token = self.mix(torch.cat([place, time, move], dim=-1))  # [B, T, D]
        if self.position is not None:
            token = token + self._last_positions(token.shape[1])
        if self.next_time is not None:
            token = token + self.next_time(windows.next_time)
        tokens: Tensor = self.dropout(token) * windows.is_real.unsqueeze(-1)
        return tokens

    def _last_positions(self, slots: int) -> Tensor:
        """Vectors of the last slots of the window, so that padding may be left away. [T, D]"""
        assert self.position is not None
        if slots > self.position.num_embeddings:
            raise BadInput(
                f"a window of {slots} visits was given to a model with "
                f"{self.position.num_embeddings} absolute positions; give it the last "
                f"{self.position.num_embeddings} or use positions='relative'"
            )
        return self.position.weight[-slots:]


def small_table(rows: int, width: int) -> nn.Embedding:
    """A learned table that starts near zero. [rows, width]"""
    table = nn.Embedding(rows, width)
    nn.init.normal_(table.weight, std=SMALL_TABLE_STD)
    return table
