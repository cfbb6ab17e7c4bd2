"""Sequence models: they read the places of the last visits, in order, and return one state.

A place has a *row* in the model's table: its number plus one. Row 0 is padding. Windows are
right-padded: the oldest visit is in slot 0, and only padding follows the last visit.

    rows     3 7 3 0 0        a history of three visits in a window of five slots
    lengths  3

A model's file has its config and its class, which implements one of

    states   the state after every visit, if a later visit changes no earlier state; then all
             positions of a window are trained at once (`all_positions`)
    state    the state after the last visit only; then every prefix is a row of its own

and `candidate_vectors` and `candidate_bias`, if its scores are more than a product of state and
place vectors. The trainer needs nothing else.

Shapes: B histories, T slots, P places, C candidates, D width, N visits.
"""

from abc import ABC
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, Final, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from castpoi.checkins.record import SECOND_US
from castpoi.checkins.trajectory import Histories
from castpoi.core.config import Config, Size, preset_named
from castpoi.core.errors import BadInput
from castpoi.methods.ranker import check_candidates
from castpoi.model.layers import fill

PADDING: Final = 0
"""Row of the place table for no place."""

MODELS: Final[Mapping[str, str]] = {
    "sasrec": "sasrec:SasRec",
    "bert4rec": "bert4rec:Bert4Rec",
    "caser": "caser:Caser",
    "narm": "narm:Narm",
    "srgnn": "srgnn:SrGnn",
    "stamp": "stamp:Stamp",
    "core": "core:Core",
    "esasrec": "sasrec:ESasRec",
    "hstu": "hstu:Hstu",
}
"""File and class of each model; imported only when needed."""

Preset = Mapping[str, Any]
"""Changes to the defaults of a config."""


@dataclass(frozen=True, kw_only=True)
class SequenceConfig(Config, ABC):
    """The settings of a sequence model.

    Each model has two presets: `paper` has the defaults of RecBole 1.2.1, with which the paper
    trained it, and `tuned` the width of CaST-POI, so that a comparison is fair.
    """

    paper: ClassVar[Preset] = {}
    tuned: ClassVar[Preset]

    width: Size = 64
    """Size of a place vector."""
    window: Size = 50
    """Number of last visits that are read."""
    padding_class: bool = False
    """Whether padding is one more class of the loss, as in RecBole."""

    @classmethod
    def preset(cls, name: str) -> Self:
        """The config of a preset."""
        return cls(**preset_named({"paper": cls.paper, "tuned": cls.tuned}, name))


class SequenceModel(nn.Module):
    """A model that predicts the next place from the previous places, in order."""

    config_class: ClassVar[type[SequenceConfig]]
    """Class of its config."""
    all_positions: ClassVar[bool] = False
    """Whether `states` returns the states of all prefixes of a window."""
    reads_times: ClassVar[bool] = False
    """Whether a window has the second of each visit next to its row. [B, T, 2]"""
    objective: ClassVar[Literal["next", "cloze"]] = "next"
    """Predicts the next place, or masked places (see `training/objectives/cloze.py`)."""

    place: nn.Embedding

    def __init__(self, *, config: SequenceConfig, places: int) -> None:
        super().__init__()
        self.config = config
        self.place = nn.Embedding(places + 1, config.width, padding_idx=PADDING)

    @property
    def place_count(self) -> int:
        """Number of places, P."""
        return self.place.num_embeddings - 1

    @property
    def device(self) -> torch.device:
        """Device of its weights."""
        return self.place.weight.device

    @torch.no_grad()
    def clear_padding(self) -> None:
        """Set the vector of padding to zero, unless the loss has a class for it."""
        if not self.config.padding_class:
            self.place.weight[PADDING].zero_()

    def state(self, rows: Tensor, lengths: Tensor) -> Tensor:
        """The state after the last visit, zero for an empty history. [B, T], [B] -> [B, D]"""
        states = self.states(rows, lengths)  # [B, T, D]
        return zero_where_empty(last_of(states, lengths), lengths)

    def states(self, rows: Tensor, lengths: Tensor) -> Tensor:
        """The state after every visit; at padding it is undefined. [B, T], [B] -> [B, T, D]"""
        raise NotImplementedError(f"{type(self).__name__} has no state but the last")

    def scores(self, state: Tensor) -> Tensor:
        """The score of every row, padding included. [B, D] -> [B, P + 1]"""
        product = state @ self.candidate_vectors().mT  # [B, P + 1]
        bias = self.candidate_bias()
        return product if bias is None else product + bias

    def candidate_vectors(self) -> Tensor:
        """The vector of each row that is multiplied with a state. [P + 1, D]"""
        return self.place.weight

    def candidate_bias(self) -> Tensor | None:
        """Added to the score of each row, if any. [P + 1]"""
        return None

    def penalty(self) -> Tensor | None:
        """Added to the mean loss of a step, if any; a scalar."""
        return None


def model_class(name: str) -> type[SequenceModel]:
    """Import and return the class of a model."""
    module, _, kind = MODELS[name].partition(":")
    return getattr(import_module(f"castpoi.baselines.{module}"), kind)


def new_model(name: str, *, config: SequenceConfig, places: int, seed: int) -> SequenceModel:
    """An untrained model for this number of places; one seed gives the same weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return model_class(name)(config=config, places=places)


class SequenceRanker:
    """A sequence model as a `Ranker`: numpy in, numpy out."""

    def __init__(
        self, model: SequenceModel, *, method: str, training: Mapping[str, Any] | None = None
    ) -> None:
        self.model = model.eval()
        self.method = method
        self.training = dict(training or {})

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
                f"a history visits place {histories.place[outside][0]}, but the model has "
                f"places 0 to {self.places - 1}; encode histories of the city it was trained on"
            )
        rows, lengths = last_rows(histories, self.model.config.window, times=self.model.reads_times)
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
        check_candidates(candidates, places=self.places)
        return scores[:, candidates]

    @torch.inference_mode()
    def place_vectors(self) -> NDArray[np.float32]:
        """The vector of each place that is multiplied with a state. [P, D]"""
        vectors: NDArray[np.float32] = self.model.candidate_vectors()[1:].float().cpu().numpy()
        return vectors

    @property
    def config(self) -> dict[str, Any]:
        """The settings of its model and a summary of its training, for JSON."""
        return {
            "method": self.method,
            "model": self.model.config.to_dict(),
            "training": self.training,
        }

    @property
    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Its weights, by name."""
        return {
            name: weight.detach().cpu().numpy() for name, weight in self.model.named_parameters()
        }

    @classmethod
    def restore(cls, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The ranker with this config and these arrays."""
        method = config["method"]
        model_config = model_class(method).config_class.from_dict(config["model"])
        places = len(arrays["place.weight"]) - 1
        model = new_model(method, config=model_config, places=places, seed=0)
        fill(dict(model.named_parameters()), arrays)
        return cls(model, method=method, training=config.get("training"))


def last_rows(
    histories: Histories, window: int, *, times: bool = False
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of the last visits, right-padded, and their number. [B, T] or [B, T, 2], [B]"""
    lengths = np.minimum(histories.lengths, window)
    begin = histories.bounds[1:] - lengths
    return padded_rows(visit_columns(histories, times=times), begin, lengths), lengths


def visit_columns(histories: Histories, *, times: bool) -> NDArray[np.int64]:
    """The place of each visit [N], or its place and its second [N, 2]."""
    if not times:
        return histories.place
    return np.stack([histories.place, histories.at_us // SECOND_US], axis=1)


def padded_rows(
    visits: NDArray[np.int64], begin: NDArray[np.int64], lengths: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Rows of `lengths` visits from each `begin`, right-padded. [N], [B], [B] -> [B, T]

    The visits of all users are in `visits` (`visit_columns`), end to end. There is at least one
    slot. A second column has times, whose differences matter: one is added to them too. [B, T, 2]
    """
    slots = np.arange(max(1, int(lengths.max(initial=0))))
    is_real = slots < lengths[:, None]  # [B, T]
    rows = np.full((*is_real.shape, *visits.shape[1:]), PADDING, dtype=np.int64)
    rows[is_real] = visits[(begin[:, None] + slots)[is_real]] + 1
    return rows


def last_of(states: Tensor, lengths: Tensor) -> Tensor:
    """The state after the last visit; that of slot 0 if there is none. [B, T, D], [B] -> [B, D]"""
    last = (lengths - 1).clamp(min=0)
    return states[torch.arange(len(states), device=states.device), last]


def zero_where_empty(state: Tensor, lengths: Tensor) -> Tensor:
    """Zero for histories without a visit, even if the state is not a number. [B, D] -> same"""
    return state.masked_fill((lengths == 0).unsqueeze(1), 0.0)


def real_slots(rows: Tensor, lengths: Tensor) -> Tensor:
    """Whether each slot has a visit. [B, T], [B] -> [B, T]"""
    return torch.arange(rows.shape[1], device=rows.device) < lengths.unsqueeze(1)
