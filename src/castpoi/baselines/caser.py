"""Caser: convolutions over the last visits, a picture of visits by features.

Tang and Wang, "Personalized Top-N Sequential Recommendation via Convolutional Sequence
Embedding", WSDM 2018.

    horizontal filters  cover 1, 2, ..., L visits in a row; each keeps its strongest response
    vertical filters    sum a feature over all slots of the window, each slot with its own weight

RecBole's last layer also takes a vector of the user. A history has no user id here, so ours does
not (docs/baselines.md).

RecBole runs one convolution per height over a picture of one channel. Here the features of a visit
are channels, and filters of ten neighbouring heights are one convolution, the shorter ones padded
with zeros: the same responses, in five products instead of fifty. Prefixes of one window share
their responses (see `prefix_responses.py`), so that all of them are trained at once.

Shapes: B histories, T slots with visits, L slots of the window, D width, H horizontal and V
vertical filters, F horizontal filters of some heights and n slots where they can start.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from castpoi.baselines.prefix_responses import LONGEST_WINDOW, prefix_responses
from castpoi.baselines.sequence import (
    PADDING,
    Preset,
    SequenceConfig,
    SequenceModel,
    zero_where_empty,
)
from castpoi.core.config import NotNegative, Share, Size
from castpoi.core.errors import BadInput
from castpoi.model.layers import Dropout

_HEIGHTS_AT_ONCE: Final = 10
"""More heights waste more on zeros, fewer make small convolutions; 8 to 13 are equally fast."""


@dataclass(frozen=True, kw_only=True)
class CaserConfig(SequenceConfig):
    """The settings of Caser."""

    # filters read the vector of padding in short windows
    paper: ClassVar[Preset] = {"padding_class": True}
    tuned: ClassVar[Preset] = {"width": 128, "dropout": 0.2}

    window: Size = 50
    """Number of last visits that are read, and height of the tallest filter. The paper used 50 for
    all baselines, Caser's authors used 5; RecBole recommends about 10, which is much cheaper (the
    cost grows with its cube) and on New York much worse (docs/baselines.md)."""
    horizontal_filters: Size = 8
    """Filters of each height."""
    vertical_filters: Size = 4
    """Filters over all slots."""
    dropout: Share = 0.4
    """Share of the filters' responses dropped in training."""
    penalty_weight: NotNegative = 1e-4
    """Weight of the norms of all weight matrices in the loss; 0 for none."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.window > LONGEST_WINDOW:
            raise BadInput(
                f"window={self.window} is too long for Caser, whose work grows with its cube; "
                f"it must be at most {LONGEST_WINDOW}"
            )


class Caser(SequenceModel):
    """Ranks places by the responses of filters to the last visits."""

    config_class: ClassVar[type[CaserConfig]] = CaserConfig
    all_positions: ClassVar[bool] = True

    def __init__(self, *, config: CaserConfig, places: int) -> None:
        super().__init__(config=config, places=places)
        width, window = config.width, config.window
        self.window = window
        self.penalty_weight = config.penalty_weight
        self.horizontal = nn.ParameterList(
            torch.empty(config.horizontal_filters, width, height + 1) for height in range(window)
        )
        self.horizontal_bias = nn.Parameter(torch.empty(window, config.horizontal_filters))
        self.vertical = nn.Linear(window, config.vertical_filters)
        responses = config.vertical_filters * width + config.horizontal_filters * window
        self.hidden = nn.Linear(responses, width)
        self.out = nn.Linear(width, width)
        self.dropout = Dropout(config.dropout)
        self._initialise()

    def _initialise(self) -> None:
        """Draw weights as RecBole does; filters as torch draws those of a convolution."""
        nn.init.normal_(self.place.weight, 0.0, 1 / self.config.width)
        self.clear_padding()
        for filters, bias in zip(self.horizontal, self.horizontal_bias, strict=True):
            bound = 1 / math.sqrt(filters[0].numel())
            nn.init.uniform_(filters, -bound, bound)
            nn.init.uniform_(bias, -bound, bound)
        for layer in (self.hidden, self.out):
            nn.init.xavier_normal_(layer.weight)
            nn.init.zeros_(layer.bias)

    def states(self, rows: Tensor, lengths: Tensor) -> Tensor:
        """The state after every visit. [B, T], [B] -> [B, T, D]

        Filters always cover a whole window, so the vector of padding is subtracted from all slots
        and its response added again. It is zero unless the loss has a class for padding.
        """
        empty = self.place.weight[PADDING].detach()  # [D]
        visits = self.place(rows.mT) - empty  # [T, B, D]
        taps = self._taps()  # [L, D, L H]
        strongest = prefix_responses(visits, taps) + empty @ taps.sum(dim=0)  # [T, B, L H]
        responses = functional.relu(strongest + self.horizontal_bias.flatten())
        of_empty = self.vertical(empty.unsqueeze(1).expand(-1, self.window)).mT  # [V, D]
        summed = (self._sums_of_prefixes(visits) + of_empty).flatten(2)  # [T, B, V D]
        found = torch.cat([summed, responses], dim=2)  # [T, B, V D + L H]
        return self._out(found).transpose(0, 1)  # [B, T, D]

    def state(self, rows: Tensor, lengths: Tensor) -> Tensor:
        """The state after the last visit, zero for an empty history. [B, T], [B] -> [B, D]"""
        rows = functional.pad(rows, (0, self.window - rows.shape[1]), value=PADDING)  # [B, L]
        picture = self.place(rows).mT  # [B, D, L]
        summed = self.vertical(picture).mT.flatten(1)  # [B, V D]
        found = torch.cat([summed, self._strongest(picture)], dim=1)  # [B, V D + L H]
        return zero_where_empty(self._out(found), lengths)

    def penalty(self) -> Tensor | None:
        """The norms of all weight matrices; not squared, as in RecBole."""
        if not self.penalty_weight:
            return None
        layers = (self.place, self.vertical, self.hidden, self.out)
        weights = [*(layer.weight for layer in layers), *self.horizontal]
        return self.penalty_weight * torch.stack([weight.norm() for weight in weights]).sum()

    def _strongest(self, picture: Tensor) -> Tensor:
        """The strongest response of every horizontal filter. [B, D, L] -> [B, H L]"""
        responses = []
        for low in range(0, self.window, _HEIGHTS_AT_ONCE):
            some = list(self.horizontal[low : low + _HEIGHTS_AT_ONCE])
            tallest = low + len(some)
            padded = [functional.pad(each, (0, tallest - each.shape[2])) for each in some]
            spare = tallest - low - 1  # slots covered only by the zeros of the shortest filter
            response = functional.conv1d(
                functional.pad(picture, (0, spare)), torch.cat(padded)
            )  # [B, F, n]
            heights = torch.arange(low, tallest, device=self.device) + 1
            ends = torch.arange(response.shape[2], device=self.device) + heights.unsqueeze(1)
            outside = (ends > self.window).repeat_interleave(len(some[0]), dim=0)  # [F, n]
            best = response.masked_fill(outside, -torch.inf).amax(dim=2)  # [B, F]
            responses.append(functional.relu(best + self.horizontal_bias[low:tallest].flatten()))
        return torch.cat(responses, dim=1)  # [B, H L]

    def _taps(self) -> Tensor:
        """Each tap of all filters, zero where a filter has none. -> [L, D, L H]"""
        padded = [
            functional.pad(each, (0, self.window - each.shape[2])) for each in self.horizontal
        ]
        return torch.stack(padded).permute(3, 2, 0, 1).flatten(2)  # from [L, H, D, L]

    def _sums_of_prefixes(self, visits: Tensor) -> Tensor:
        """Sums of the vertical filters up to every visit. [T, B, D] -> [T, B, V, D]"""
        slots = len(visits)
        weights = self.vertical.weight[:, None, :slots].expand(-1, slots, -1).tril()  # [V, T, T]
        return torch.einsum("vts,sbd->tbvd", weights, visits)

    def _out(self, found: Tensor) -> Tensor:
        """The state for the responses of the filters. [..., V D + L H] -> [..., D]"""
        read = functional.relu(self.hidden(self.dropout(found)))  # [..., D]
        return functional.relu(self.out(read))
