"""When the next visit is, for models that know it (`ModelConfig.known_time`).

Whoever asks "where now?" knows it of the visit to come; of all others the history tells. So the
token of every visit tells when the one after it is: the hour of the day, apart for working days and
weekends, and how long until then, one learned vector each. Both start at zero. The clock is that of
the visit itself: the next one's offset from UTC would tell where it is.

Shapes: N visits laid end to end, B histories, T slots, D width.
"""

from typing import Final

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from numpy.typing import NDArray
from torch import Tensor, nn

from castpoi.checkins.record import DAY_US, HOUR_US
from castpoi.checkins.trajectory import Histories, is_weekend, local_us
from castpoi.geo.distance import TEMPORAL_BIAS_EDGES_HOURS, bucket_of
from castpoi.model.config import ModelConfig

_HOURS: Final = 24
_KINDS_OF_DAY: Final = 2


def next_times(visits: Histories) -> NDArray[np.int64]:
    """Hour of the next visit, 24 to 47 on a weekend, and bucket of the time until then. [N, 2]"""
    next_us = visits.following_us
    local = local_us(visits, next_us)
    hour = local % DAY_US // HOUR_US + _HOURS * is_weekend(local)
    wait_hours = np.maximum(next_us - visits.at_us, 0) / HOUR_US
    return np.stack([hour, bucket_of(wait_hours, TEMPORAL_BIAS_EDGES_HOURS)], axis=-1).astype(
        np.int64
    )


class NextTime(nn.Module):
    """What the time of the next visit adds to the token of a visit."""

    def __init__(self, *, config: ModelConfig) -> None:
        super().__init__()
        # no draw: all other weights start as they do without this part
        self.hour = nn.Parameter(torch.zeros(_KINDS_OF_DAY * _HOURS, config.width))
        self.wait = nn.Parameter(torch.zeros(len(TEMPORAL_BIAS_EDGES_HOURS) + 1, config.width))

    def forward(self, next_time: Tensor) -> Tensor:
        """The two vectors summed. [B, T, 2] -> [B, T, D]"""
        hour, wait = next_time.unbind(dim=-1)
        return F.embedding(hour, self.hour) + F.embedding(wait, self.wait)
