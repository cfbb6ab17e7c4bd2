"""What the official RecBole models score; `tools/recbole_oracle.py fixtures` has written it.

Shapes: B histories, T slots of a window (right-padded), P places.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor

from castpoi.baselines.sequence import SequenceModel
from castpoi.training.sequence_loss import next_place_loss

FOLDER = Path(__file__).parent / "oracle"
NAMES = ("sasrec", "bert4rec", "caser", "narm", "srgnn", "stamp", "core")
TOLERANCE = 1e-5


@dataclass(frozen=True, kw_only=True)
class Oracle:
    """One official model with small random weights, and how it scores some histories."""

    about: dict[str, Any]
    """Its name, window and sizes, in RecBole's words."""
    weights: dict[str, Tensor]
    """Its weights, by RecBole's names; the row of padding is not zero."""
    rows: Tensor
    """Rows of the places visited; 0 is padding. [B, T]"""
    lengths: Tensor
    """Visits of each history. [B]"""
    scores: Tensor
    """Scores of the padding class and of every place. [B, P + 1]"""
    users: Tensor | None
    """Caser's row of each history's user. [B]"""
    scores_of_all_visits: Tensor | None
    """What BERT4Rec scores when it does not drop the first visit. [B, P + 1]"""
    is_masked: Tensor | None
    """The visits that BERT4Rec's loss asks for. [B, T]"""
    targets: Tensor | None
    """Row of the place that follows each history, but for BERT4Rec. [B]"""
    loss: Tensor | None
    """What the model learns from them, the padding class and Caser's penalty included. [1]"""

    @property
    def places(self) -> int:
        """Number of places, P."""
        return self.scores.shape[1] - 1

    def load_into(self, model: SequenceModel, named: Mapping[str, str]) -> None:
        """Give a model of ours all of its weights; `named` maps our names to RecBole's."""
        unused = self.weights.keys() - set(named.values())
        assert not unused, f"no weight of ours takes {sorted(unused)}"
        model.load_state_dict({ours: self.weights[theirs] for ours, theirs in named.items()})
        model.eval()


def load_oracle(name: str) -> Oracle:
    """The oracle of a baseline."""
    with safe_open(FOLDER / f"{name}.safetensors", framework="pt") as stored:
        content = {key: stored.get_tensor(key) for key in stored.keys()}  # noqa: SIM118
        about = json.loads(stored.metadata()["about"])
    return Oracle(
        about=about,
        rows=content.pop("rows"),
        lengths=content.pop("lengths"),
        scores=content.pop("scores"),
        users=content.pop("users", None),
        scores_of_all_visits=content.pop("scores_of_all_visits", None),
        is_masked=content.pop("is_masked", None),
        targets=content.pop("targets", None),
        loss=content.pop("loss", None),
        weights=content,
    )


def check_scores(model: SequenceModel, oracle: Oracle, expected: Tensor | None = None) -> None:
    """Every score is the oracle's (or the expected one), all histories at once and one by one."""
    expected = oracle.scores if expected is None else expected
    with torch.no_grad():
        together = model.scores(model.state(oracle.rows, oracle.lengths))  # [B, P + 1]
        apart = [
            model.scores(model.state(rows[None, :length], length[None]))
            for rows, length in zip(oracle.rows, oracle.lengths, strict=True)
        ]
    torch.testing.assert_close(together, expected, rtol=0, atol=TOLERANCE)
    torch.testing.assert_close(torch.cat(apart), expected, rtol=0, atol=TOLERANCE)


def check_loss(model: SequenceModel, oracle: Oracle) -> None:
    """The loss is the oracle's, which has a class for padding."""
    assert oracle.targets is not None
    assert oracle.loss is not None
    assert model.config.padding_class
    loss = next_place_loss(model, model.state(oracle.rows, oracle.lengths), oracle.targets)
    torch.testing.assert_close(loss, oracle.loss.squeeze(), rtol=0, atol=TOLERANCE)
