"""Our names for the weights of RecBole's transformer, and its own."""


def names_of_blocks(layers: int, *, within: str = "") -> dict[str, str]:
    """Ours to RecBole's, for all blocks; `within` is the part of its model that holds them."""
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
