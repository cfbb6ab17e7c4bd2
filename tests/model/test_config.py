import json
import re
from dataclasses import replace
from typing import Any

import pytest

from castpoi.core.errors import BadInput
from castpoi.geo.buckets import (
    DISPLACEMENT_EDGES_KM,
    SPATIAL_BIAS_EDGES_KM,
    TEMPORAL_BIAS_EDGES_HOURS,
)
from castpoi.model.config import PRESETS, ModelConfig
from tests.messages import refused


def test_the_paper_preset_has_the_sizes_of_the_published_model() -> None:
    """As `reference-facts.md` has them; bucket edges are in tests/geo."""
    paper = PRESETS["paper"]
    assert (paper.width, paper.heads, paper.backbone_layers, paper.reader_layers) == (128, 4, 2, 2)
    assert (paper.feed_forward_width, paper.gate_width, paper.dropout) == (128, 32, 0.1)
    assert (paper.time_slot_width, paper.move_bucket_width, paper.move_width) == (16, 16, 32)
    assert (paper.window, paper.revisit_window, paper.revisit_features) == (50, 512, "paper")
    assert (paper.positions, paper.gamma_start, paper.spatial_start) == ("absolute", "zero", "zero")
    assert paper.spatial_edges_km == SPATIAL_BIAS_EDGES_KM
    assert paper.temporal_edges_hours == TEMPORAL_BIAS_EDGES_HOURS
    assert paper.displacement_edges_km == DISPLACEMENT_EDGES_KM
    switches = {name for name, value in paper.to_dict().items() if value is True}
    assert switches == {
        *("backbone", "candidate_conditioning"),
        *("temporal_bias", "spatial_bias", "revisit_gate"),
    }


def test_fast_differs_from_the_paper_in_what_decisions_7_and_15_list_and_in_nothing_else() -> None:
    paper, fast = PRESETS["paper"].to_dict(), PRESETS["fast"].to_dict()
    differing = {name for name in paper if paper[name] != fast[name]}
    assert differing == {
        *("positions", "gamma_start", "spatial_start", "dropout"),
        *("looking_away", "reader_forecast"),
    }


def test_a_run_from_before_candidates_could_look_away_is_read_as_it_was_trained() -> None:
    older = ModelConfig.preset("fast").to_dict()
    del older["looking_away"]
    assert ModelConfig.from_dict(older) == replace(ModelConfig.preset("fast"), looking_away=False)


def test_next_is_fast_with_a_distance_gate_habits_and_deep_revisits_instead_of_the_reader() -> None:
    ours, fast = PRESETS["next"].to_dict(), PRESETS["fast"].to_dict()
    assert {name: ours[name] for name in ours if ours[name] != fast[name]} == {
        "candidate_conditioning": False,
        "looking_away": False,
        "distance_gate": True,
        "revisit_features": "habits",
        "deep_revisits": True,
    }
    assert ours["distance_anchors"] == ["last", "home"]


def test_the_four_terms_of_the_paper_are_there_whatever_is_switched_off() -> None:
    bare = ModelConfig(revisit_gate=False, candidate_conditioning=False)
    assert bare.terms == PRESETS["paper"].terms == ("base", "popularity", "reader", "revisit")
    assert PRESETS["next"].terms == (*bare.terms, "distance")


def test_a_config_survives_json() -> None:
    config = ModelConfig(
        width=64,
        heads=2,
        spatial_edges_km=(1.0, 3.0),
        revisit_gate=False,
        distance_gate=True,
        distance_anchors=("home", "before_last"),
    )
    assert ModelConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


def test_the_paper_reads_its_window_and_no_more() -> None:
    assert ModelConfig.preset("paper").visits_read == 50


def test_the_oldest_of_fifty_states_reaches_back_forty_nine_visits_in_each_of_two_layers() -> None:
    assert ModelConfig.preset("fast").visits_read == 50 + 49 + 49
    assert ModelConfig.preset("next").visits_read == 1 + 49 + 49  # only the last state is read


def test_without_a_backbone_only_the_readers_window_is_read() -> None:
    assert ModelConfig(backbone=False).visits_read == 50


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"width": 0}, "width=0 is not valid; it must be a whole number from 1 to 2048"),
        ({"window": 2.5}, "window=2.5 is not valid; it must be a whole number from 1 to 2048"),
        ({"reader_layers": True}, "reader_layers=True is not valid; it must be a whole number"),
        ({"width": 10**9}, "width=1000000000 is not valid; it must be a whole number"),
        ({"backbone_layers": 10**7}, "backbone_layers=10000000 is not valid; it must be a whole "),
        ({"heads": 3}, "heads=3 must divide width=128"),
        (
            {"dropout": 1.0},
            "dropout=1.0 is not valid; it must be a number of at least 0 and below 1",
        ),
        (
            {"dropout": float("nan")},
            "dropout=nan is not valid; it must be a number of at least 0 and below 1",
        ),
        ({"dropout": "0.1"}, "dropout='0.1' is not valid; it must be a number"),
        ({"backbone": 1}, "backbone=1 is not valid; it must be true or false"),
        ({"positions": "rotary"}, "positions='rotary' is not valid; it must be 'absolute' or"),
        ({"gamma_start": "two"}, "gamma_start='two' is not valid; it must be 'zero' or 'one'"),
        ({"spatial_edges_km": ()}, "spatial_edges_km=() is not valid; it must be 1 to 255"),
        ({"spatial_edges_km": (2.0, 2.0)}, "positive numbers, each above the one before"),
        ({"temporal_edges_hours": (0.0, 1.0)}, "positive numbers, each above the one before"),
        ({"displacement_edges_km": ("1",)}, "positive numbers, each above the one before"),
        ({"spatial_edges_km": (1.0, 3e4)}, "spatial_edges_km ends at 30000 km, but no two places"),
        ({"distance_gate_edges_km": (3e4,)}, "distance_gate_edges_km ends at 30000 km, but no two"),
        ({"revisit_features": "all"}, "revisit_features='all' is not valid; it must be 'paper' or"),
        ({"distance_gate": 1}, "distance_gate=1 is not valid; it must be true or false"),
        ({"forgotten_places": 1.0}, "forgotten_places=1.0 is not valid; it must be a number of"),
        ({"neighbourhoods_km": (5.0, 1.0)}, "positive numbers, each above the one before"),
        ({"distance_anchors": ()}, "distance_anchors=() is not valid; it must be one or more of"),
        ({"distance_anchors": ("work",)}, "of last, before_last, home, none of them twice"),
        ({"distance_anchors": ("home", "home")}, "of last, before_last, home, none of them twice"),
        (
            {"distance_anchors": ("last", "home"), "distance_gate_edges_km": tuple(range(1, 65))},
            "2 distance_anchors with 65 buckets each have 4225 combinations, the most is 4096",
        ),
    ],
)
def test_nonsense_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput, match=re.escape(words)):
        ModelConfig(**changes)


def test_an_unknown_setting_is_refused_with_the_known_ones() -> None:
    with refused(BadInput):
        ModelConfig.from_dict({"depth": 3})


def test_an_unknown_preset_is_refused() -> None:
    with refused(BadInput):
        ModelConfig.preset("huge")
