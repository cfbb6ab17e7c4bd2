import re
from typing import Any

import pytest

from castpoi.core.errors import BadInput
from castpoi.model.config import PRESETS, REVISIT_WINDOW, ModelConfig


def test_the_paper_preset_has_the_sizes_of_the_published_model() -> None:
    """As `reference-facts.md` has them; bucket edges are in tests/geo."""
    paper = PRESETS["paper"]
    assert (paper.width, paper.heads, paper.backbone_layers, paper.reader_layers) == (128, 4, 2, 2)
    assert (paper.feed_forward_width, paper.dropout) == (128, 0.1)
    assert (paper.window, REVISIT_WINDOW, paper.revisit_features) == (50, 512, "paper")
    assert (paper.positions, paper.gamma_start, paper.spatial_start) == ("absolute", "zero", "zero")
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
        *("null_attention", "reader_forecast"),
    }


def test_next_is_fast_with_a_distance_gate_habits_and_deep_revisits_instead_of_the_reader() -> None:
    ours, fast = PRESETS["next"].to_dict(), PRESETS["fast"].to_dict()
    assert {name: ours[name] for name in ours if ours[name] != fast[name]} == {
        "candidate_conditioning": False,
        "null_attention": False,
        "distance_gate": True,
        "revisit_features": "habits",
        "deep_revisits": True,
    }


def test_a_term_that_is_switched_off_is_not_listed() -> None:
    assert PRESETS["paper"].terms == ("base", "popularity", "reader", "revisit")
    assert PRESETS["next"].terms == ("base", "popularity", "revisit", "distance")
    assert ModelConfig(revisit_gate=False, candidate_conditioning=False).terms == (
        "base",
        "popularity",
    )


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
        ({"revisit_features": "all"}, "revisit_features='all' is not valid; it must be 'paper' or"),
        ({"distance_gate": 1}, "distance_gate=1 is not valid; it must be true or false"),
    ],
)
def test_nonsense_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput, match=re.escape(words)):
        ModelConfig(**changes)
