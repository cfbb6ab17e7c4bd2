"""Caser: a history is a picture of visits by features, and filters look for patterns in it.

Tang and Wang, "Personalized Top-N Sequential Recommendation via Convolutional Sequence
Embedding", WSDM 2018.

    horizontal filters  see 1, 2, ..., L visits in a row; each keeps its strongest response
    vertical filters    sum a feature over all slots of the window, each slot with its own weight

RecBole's last layer also takes a vector of the user. A history names no user here, so ours does
not (docs/baselines.md).

RecBole runs one convolution a height over a picture of one channel. Here the features of a visit
are channels, and filters of ten neighbouring heights are one convolution, the shorter ones filled
up with zeros: the same responses, in five products instead of fifty. And prefixes of one window
share their responses (see `prefix_responses.py`), so that all of them learn at once.

Shapes: B histories, T slots with visits, L slots of the window, D width, H horizontal and V
vertical filters, F horizontal filters of some heights and n slots where they can begin.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from castpoi.baselines.prefix_responses import LONGEST_WINDOW, prefix_responses
from castpoi.baselines.sequence import PADDING, SequenceModel, zero_where_empty
from castpoi.baselines.sequence_config import SequenceConfig
from castpoi.core.errors import BadInput
from castpoi.model.dropout import Dropout

_HEIGHTS_AT_ONCE: Final = 10
"""More heights waste more on zeros, fewer make small convolutions; 8 to 13 are equally quick."""


@dataclass(frozen=True, kw_only=True)
class CaserConfig(SequenceConfig):
    """The shape of one Caser; refuses what cannot be built."""

    window: int = 50
    """Last visits of a history that are read, and the tallest filter. The paper gave all its
    baselines 50; Caser's authors used 5, and RecBole advises about 10, which is far cheaper (the
    work grows with its cube) and on New York far worse (docs/baselines.md)."""
    horizontal_filters: int = 8
    """Filters of each height."""
    vertical_filters: int = 4
    """Filters over all slots."""
    dropout: float = 0.4
    """Share of what the filters found that is dropped in training."""
    penalty_weight: float = 1e-4
    """Weight of the norms of all weight matrices in the loss; 0 for none."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.window > LONGEST_WINDOW:
            raise BadInput(
                f"window={self.window} is too long for Caser, whose work grows with its cube; "
                f"it must be at most {LONGEST_WINDOW}"
            )

    @classmethod
    def presets(cls) -> Mapping[str, Self]:
        """The presets by name: `paper` and `tuned`."""
        return {
            "paper": cls(padding_class=True),  # whose row filters see in short windows
            "tuned": cls(width=128, dropout=0.2),
        }


class Caser(SequenceModel):
    """Ranks places by the patterns that filters find in the last visits."""

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
        found = config.vertical_filters * width + config.horizontal_filters * window
        self.gather = nn.Linear(found, width)
        self.conclude = nn.Linear(width, width)
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
        for layer in (self.gather, self.conclude):
            nn.init.xavier_normal_(layer.weight)
            nn.init.zeros_(layer.bias)

    def states(self, rows: Tensor, lengths: Tensor) -> Tensor:
        """The state after every visit. [B, T], [B] -> [B, T, D]

        What an empty slot holds is taken from all slots and added to what the filters found: they
        always see a whole window. It is zero unless the loss has a class for padding.
        """
        empty = self.place.weight[PADDING].detach()  # [D]
        visits = self.place(rows.mT) - empty  # [T, B, D]
        taps = self._taps()  # [L, D, L H]
        strongest = prefix_responses(visits, taps) + empty @ taps.sum(dim=0)  # [T, B, L H]
        responses = functional.relu(strongest + self.horizontal_bias.flatten())
        of_empty = self.vertical(empty.unsqueeze(1).expand(-1, self.window)).mT  # [V, D]
        summed = (self._sums_of_prefixes(visits) + of_empty).flatten(2)  # [T, B, V D]
        found = torch.cat([summed, responses], dim=2)  # [T, B, V D + L H]
        return self._conclusion(found).transpose(0, 1)  # [B, T, D]

    def state(self, rows: Tensor, lengths: Tensor) -> Tensor:
        """The state after the last visit, zero where there is none. [B, T], [B] -> [B, D]"""
        rows = functional.pad(rows, (0, self.window - rows.shape[1]), value=PADDING)  # [B, L]
        picture = self.place(rows).mT  # [B, D, L]
        summed = self.vertical(picture).mT.flatten(1)  # [B, V D]
        found = torch.cat([summed, self._strongest(picture)], dim=1)  # [B, V D + L H]
        return zero_where_empty(self._conclusion(found), lengths)

    def penalty(self) -> Tensor | None:
        """The norms of all weight matrices; not squared, as in RecBole."""
        if not self.penalty_weight:
            return None
        layers = (self.place, self.vertical, self.gather, self.conclude)
        weights = [*(layer.weight for layer in layers), *self.horizontal]
        return self.penalty_weight * torch.stack([weight.norm() for weight in weights]).sum()

    def _strongest(self, picture: Tensor) -> Tensor:
        """The strongest response of every horizontal filter. [B, D, L] -> [B, H L]"""
        responses = []
        for low in range(0, self.window, _HEIGHTS_AT_ONCE):
            some = list(self.horizontal[low : low + _HEIGHTS_AT_ONCE])
            tallest = low + len(some)
            padded = [functional.pad(each, (0, tallest - each.shape[2])) for each in some]
            spare = tallest - low - 1  # slots that only the zeros of the shortest filter see
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
        """What vertical filters sum up to every visit. [T, B, D] -> [T, B, V, D]"""
        slots = len(visits)
        weights = self.vertical.weight[:, None, :slots].expand(-1, slots, -1).tril()  # [V, T, T]
        return torch.einsum("vts,sbd->tbvd", weights, visits)

    def _conclusion(self, found: Tensor) -> Tensor:
        """The state for the responses of the filters. [..., V D + L H] -> [..., D]"""
        read = functional.relu(self.gather(self.dropout(found)))  # [..., D]
        return functional.relu(self.conclude(read))
