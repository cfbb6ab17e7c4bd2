"""Any sequence model behind the one protocol of every ranking method: numpy in, numpy out.

A history names no user, so a model ranks for people it has never met; models that learn a vector a
user (Caser) do without it here.

Shapes: B histories, T slots, P places, C candidates, D width.
"""

from collections.abc import Mapping
from typing import Any, Final, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from castpoi.baselines.sequence import PADDING, SequenceModel, padded_rows
from castpoi.baselines.sequence_models import model_class, new_model
from castpoi.checkins.trajectory import Histories
from castpoi.core.errors import BadInput
from castpoi.model.weights import fill

_TABLE: Final = "place.weight"


class SequenceRanker:
    """Ranks places with a sequence model."""

    def __init__(
        self, model: SequenceModel, *, method: str, training: Mapping[str, Any] | None = None
    ) -> None:
        self.model = model.eval()
        self.method = method
        self.training = dict(training or {})  # how the weights came about, for the record

    @property
    def places(self) -> int:
        """Number of places in the vocabulary, P."""
        return self.model.place_count

    @torch.inference_mode()
    def encode(self, histories: Histories) -> Tensor:
        """The state after each history. [B, D]"""
        outside = (histories.place < 0) | (histories.place >= self.places)
        if outside.any():
            raise BadInput(
                f"a history visits place {histories.place[outside][0]}, but the model knows "
                f"places 0 to {self.places - 1}; encode histories of the city it was made for"
            )
        rows, lengths = last_rows(histories, self.model.config.window)
        device = self.model.device
        return self.model.state(
            torch.from_numpy(rows).to(device), torch.from_numpy(lengths).to(device)
        )

    @torch.inference_mode()
    def score(
        self, encoded: Tensor, candidates: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        """Score every place, or the candidates, for each history. [B, P] or [B, C]"""
        every = self.model.scores(encoded)[:, PADDING + 1 :]  # [B, P]
        scores: NDArray[np.float32] = every.float().cpu().numpy()
        if candidates is None:
            return scores
        outside = (candidates < 0) | (candidates >= self.places)
        if outside.any():
            raise BadInput(
                f"candidate {candidates[outside][0]} is no place of the city; "
                f"its places are 0 to {self.places - 1}"
            )
        return scores[:, candidates]

    @property
    def config(self) -> dict[str, Any]:
        """The shape of its model and how it was trained, as JSON can hold them."""
        return {
            "method": self.method,
            "model": self.model.config.to_dict(),
            "training": self.training,
        }

    @property
    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Its weights."""
        return {
            name: weight.detach().cpu().numpy() for name, weight in self.model.named_parameters()
        }

    @classmethod
    def restore(cls, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The ranker that once had these settings and arrays; it scores the same."""
        method = config["method"]
        model_config = model_class(method).config_class.from_dict(config["model"])
        model = new_model(method, config=model_config, places=len(arrays[_TABLE]) - 1, seed=0)
        fill(dict(model.named_parameters()), arrays)
        return cls(model, method=method, training=config.get("training"))


def last_rows(histories: Histories, window: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of the last visits, right-padded to the longest history, and how many. [B, T], [B]

    There is always one slot, even if all histories are empty.
    """
    lengths = np.minimum(histories.lengths, window)
    return padded_rows(histories.place, histories.bounds[1:] - lengths, lengths), lengths
