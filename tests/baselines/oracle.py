"""Scores of the official RecBole models, written by `tools/recbole_oracle.py fixtures`.

Shapes: B histories, T slots of a window (right-padded), P places.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor

from castpoi.baselines.sequence import SequenceModel, model_class
from castpoi.baselines.srgnn import SrGnn
from castpoi.training.objectives.next_place import next_place_loss

FOLDER = Path(__file__).parent / "oracle"
NAMES = ("sasrec", "bert4rec", "caser", "narm", "srgnn", "stamp", "core")
TOLERANCE = 1e-5


@dataclass(frozen=True, kw_only=True)
class Oracle:
    """One official model with small random weights, and its scores of some histories."""

    about: dict[str, Any]  # name, window and sizes, in RecBole's words
    weights: dict[str, Tensor]  # by RecBole's names; the row of padding is not zero
    rows: Tensor  # rows of the places visited; 0 is padding [B, T]
    lengths: Tensor  # visits of each history [B]
    scores: Tensor  # of the padding class and of every place [B, P + 1]
    users: Tensor | None = None  # Caser: row of the user of each history [B]
    scores_of_all_visits: Tensor | None = None  # BERT4Rec with the first visit [B, P + 1]
    is_masked: Tensor | None = None  # BERT4Rec: the targets of its loss [B, T]
    targets: Tensor | None = None  # row of the place after each history; not of BERT4Rec [B]
    loss: Tensor | None = None  # mean loss, with the padding class and Caser's penalty [1]

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
    named = {each.name: content.pop(each.name) for each in fields(Oracle) if each.name in content}
    return Oracle(about=about, weights=content, **named)


def check_scores(model: SequenceModel, oracle: Oracle, expected: Tensor | None = None) -> None:
    """Check every score against the oracle, with all histories at once and one by one."""
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
    """Check the loss against the oracle, which has a class for padding."""
    assert oracle.targets is not None
    assert oracle.loss is not None
    assert model.config.padding_class
    loss = next_place_loss(model, model.state(oracle.rows, oracle.lengths), oracle.targets)
    torch.testing.assert_close(loss, oracle.loss.squeeze(), rtol=0, atol=TOLERANCE)


def names_of_blocks(layers: int, *, within: str = "") -> dict[str, str]:
    """Our names to RecBole's, for all blocks; `within` is the part of its model with the blocks."""
    parts = {
        "attention.query": "multi_head_attention.query",
        "attention.key": "multi_head_attention.key",
        "attention.value": "multi_head_attention.value",
        "attention.mix": "multi_head_attention.dense",
        "attention_norm": "multi_head_attention.LayerNorm",
        "feed_forward.widen": "feed_forward.dense_1",
        "feed_forward.narrow": "feed_forward.dense_2",
        "feed_forward_norm": "feed_forward.LayerNorm",
    }
    return {
        f"blocks.{layer}.{ours}.{kind}": f"{within}trm_encoder.layer.{layer}.{theirs}.{kind}"
        for layer in range(layers)
        for ours, theirs in parts.items()
        for kind in ("weight", "bias")
    }


_TRANSFORMER = {"heads": 2, "layers": 2, "feed_forward_width": 256}
_SLOTS = {
    "slot.weight": "position_embedding.weight",
    "norm.weight": "LayerNorm.weight",
    "norm.bias": "LayerNorm.bias",
}
NAMED: dict[str, dict[str, str]] = {
    "sasrec": _SLOTS | names_of_blocks(2),
    "core": {
        **{ours: f"net.{theirs}" for ours, theirs in _SLOTS.items()},
        "weight.weight": "net.fn.weight",
        "weight.bias": "net.fn.bias",
        **names_of_blocks(2, within="net."),
    },
    "narm": {
        "gru.weight_ih_l0": "gru.weight_ih_l0",
        "gru.weight_hh_l0": "gru.weight_hh_l0",
        "key.weight": "a_1.weight",
        "query.weight": "a_2.weight",
        "weight.weight": "v_t.weight",
        "out.weight": "b.weight",
    },
    "srgnn": {
        "from_before.weight": "gnn.linear_edge_in.weight",
        "from_before.bias": "gnn.linear_edge_in.bias",
        "from_after.weight": "gnn.linear_edge_out.weight",
        "from_after.bias": "gnn.linear_edge_out.bias",
        "bias_before": "gnn.b_iah",
        "bias_after": "gnn.b_ioh",
        "update.weight_ih": "gnn.w_ih",
        "update.weight_hh": "gnn.w_hh",
        "update.bias_ih": "gnn.b_ih",
        "update.bias_hh": "gnn.b_hh",
        "query.weight": "linear_one.weight",
        "query.bias": "linear_one.bias",
        "key.weight": "linear_two.weight",
        "key.bias": "linear_two.bias",
        "weight.weight": "linear_three.weight",
        "out.weight": "linear_transform.weight",
        "out.bias": "linear_transform.bias",
    },
    "stamp": {
        "key.weight": "w1.weight",
        "last_query.weight": "w2.weight",
        "mean_query.weight": "w3.weight",
        "query_bias": "b_a",
        "weight.weight": "w0.weight",
        "memory_out.weight": "mlp_a.weight",
        "memory_out.bias": "mlp_a.bias",
        "last_out.weight": "mlp_b.weight",
        "last_out.bias": "mlp_b.bias",
    },
}
"""Our name of each weight to RecBole's, without the place table; Caser and BERT4Rec have others."""
_SETTINGS: dict[str, dict[str, Any]] = {
    "sasrec": _TRANSFORMER,
    "core": _TRANSFORMER,
    "narm": {"memory_width": 12},
    "stamp": {"reads_padding": True},
}


def twin(name: str, **settings: Any) -> SequenceModel:
    """Our model with all weights of the oracle."""
    oracle = load_oracle(name)
    kind = model_class(name)
    sizes = {"width": 8, "window": 6, "padding_class": True}
    if "inner_size" in oracle.about:
        sizes["feed_forward_width"] = oracle.about["inner_size"]
    config = kind.config_class.from_dict(_SETTINGS.get(name, {}) | sizes | settings)
    model = kind(config=config, places=oracle.places)
    oracle.load_into(model, {"place.weight": "item_embedding.weight", **NAMED[name]})
    if isinstance(model, SrGnn):
        with torch.no_grad():
            # RecBole's middle gate is the share of the new value, torch's that of the old
            for weight in model.update.parameters():
                weight[8:16].neg_()
    return model
