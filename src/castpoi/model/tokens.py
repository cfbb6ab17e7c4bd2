"""The token encoder: a vector of each visit from its place, its local time and the move to it.

    x_i = W_in [ e_place ; e_time(t_i) ; e_geo(l_{i-1}, l_i) ]  ( + e_position_i ) ( + e_next_i )

The position is added here only if positions are absolute; relative ones are in the backbone. The
last vector is ours, for models that receive the time of the next visit (`ModelConfig.known_time`):
its hour, separately for working days and weekends, and the time until then. Within the history, the
next visit is the one that followed. The clock is that of the visit itself: the offset from UTC of
the next one would reveal where it is.

Shapes: B histories, T slots, D width.
"""

import math
from typing import Final

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from castpoi.geo.distance import DISPLACEMENT_EDGES_KM, TEMPORAL_BIAS_EDGES_HOURS
from castpoi.model.config import ModelConfig
from castpoi.model.layers import Dropout, small_table
from castpoi.model.windows import Windows

_HOURS: Final = 24
_PART_HOURS: Final = 6  # night, morning, afternoon, evening
_PART_WIDTH: Final = 16
_CIRCLE_FEATURES: Final = 4
_DEGREES_SCALE: Final = 0.1  # of the order of a long move within a city
_MOVE_BUCKET_WIDTH: Final = 16


class TimeEncoder(nn.Module):
    """Local hour and weekday as points on two circles, and the part of the day as a vector."""

    width: Final = _CIRCLE_FEATURES + _PART_WIDTH

    def __init__(self) -> None:
        super().__init__()
        self.slot = small_table(_HOURS // _PART_HOURS, _PART_WIDTH)

    def forward(self, local_hour: Tensor, weekday: Tensor) -> Tensor:
        """Features of the local time. [B, T], [B, T] -> [B, T, 4 + 16]"""
        hour_angle = local_hour * (2 * math.pi / _HOURS)
        weekday_angle = weekday * (2 * math.pi / 7)
        circles = torch.stack(
            [hour_angle.sin(), hour_angle.cos(), weekday_angle.sin(), weekday_angle.cos()], dim=-1
        )  # [B, T, 4]
        part = self.slot((local_hour / _PART_HOURS).long())  # [B, T, 16]
        return torch.cat([circles, part], dim=-1)


class MoveEncoder(nn.Module):
    """Length and direction of the move that led to a visit."""

    width: Final = 32

    def __init__(self) -> None:
        super().__init__()
        self.bucket = small_table(len(DISPLACEMENT_EDGES_KM) + 1, _MOVE_BUCKET_WIDTH)
        features = 1 + _MOVE_BUCKET_WIDTH + 2
        self.mix = nn.Sequential(
            nn.Linear(features, self.width), nn.ReLU(), nn.Linear(self.width, self.width)
        )

    def forward(self, move_km: Tensor, move_bucket: Tensor, move_degrees: Tensor) -> Tensor:
        """Features of the moves. [B, T], [B, T], [B, T, 2] -> [B, T, width]"""
        far = move_km.log1p().unsqueeze(-1)  # [B, T, 1]
        return self.mix(
            torch.cat([far, self.bucket(move_bucket), move_degrees / _DEGREES_SCALE], dim=-1)
        )


class NextTime(nn.Module):
    """One vector of the hour of the next visit and one of the time until then; zero at first."""

    def __init__(self, *, width: int) -> None:
        super().__init__()
        # no random draw: all other weights start as they do without this part
        self.hour = nn.Parameter(torch.zeros(2 * _HOURS, width))
        self.wait = nn.Parameter(torch.zeros(len(TEMPORAL_BIAS_EDGES_HOURS) + 1, width))

    def forward(self, next_time: Tensor) -> Tensor:
        """The two vectors summed. [B, T, 2] -> [B, T, D]"""
        hour, wait = next_time.unbind(dim=-1)
        return F.embedding(hour, self.hour) + F.embedding(wait, self.wait)


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
        self.next_time = NextTime(width=config.width) if config.known_time else None
        self.dropout = Dropout(config.dropout)

    def forward(self, place: Tensor, windows: Windows) -> Tensor:
        """One vector for each visit. [B, T, D], windows -> [B, T, D]"""
        time = self.time(windows.local_hour, windows.weekday)
        move = self.move(windows.move_km, windows.move_bucket, windows.move_degrees)
        token = self.mix(torch.cat([place, time, move], dim=-1))  # [B, T, D]
        if self.position is not None:
            token = token + self.position.weight[-token.shape[1] :]  # of the last slots [T, D]
        if self.next_time is not None:
            token = token + self.next_time(windows.next_time)
        return self.dropout(token) * windows.is_real.unsqueeze(-1)
