"""Model cards: what a method is, how good, how trained, and how to reproduce it."""

from pathlib import Path
from typing import Any

import pytest

from castpoi.reports.card import model_card
from castpoi.reports.evidence import Evidence, read_evidence
from tests.manifests import accept_changes
from tests.reports.result_folders import result_of, write_suite


def card_of(folder: Path, **more: Any) -> str:
    """The card of one result."""
    result_of([1.0, 2.0, 4.0, 20.5], **more).save(folder / "t" / "a")
    evidence = read_evidence(folder / "t")
    return model_card(evidence, evidence.rows[0])


def test_the_card_of_a_learned_method_describes_its_training(evidence: Evidence) -> None:
    variant = next(row for row in evidence.rows if row.name == "no-spatial-bias")
    card = model_card(evidence, variant)
    assert card.startswith("# w/o spatial bias\n\n`castpoi`: ")
    own = next(each for each in evidence.results if each.row == variant and each.seed == 1)
    hits = f"{100 * (own.result.metrics['HR@5'] or 0):.2f}"
    for words in (
        "Preset: fast.",
        "Changed: `spatial_bias=false`.",
        "over seeds 1, 2.",
        f"\n- seed 1; HR@5 {hits}, HR@10 ",
        "; 1,234 parameters; 3 epochs, last loss 1.667; 90 s of training;",
        "Calibration error of its softmax:",
        "castpoi train oldtown --model castpoi --seed 2",
        "| targets | 120 | 60 | 60 |",
    ):
        assert words in card


def test_a_card_names_the_row_whose_weights_it_has(tmp_path: Path) -> None:
    root = write_suite(tmp_path / "s", targets=4)
    for row in ("castpoi", "no-spatial-bias"):
        trained = {"wall_seconds": 90.0, "started_utc": "noon"}
        accept_changes(root / "oldtown" / row / "1", trained=trained)
    evidence = read_evidence(root)
    (variant,) = [row for row in evidence.rows if row.name == "no-spatial-bias"]
    card = model_card(evidence, variant)
    assert "- seed 1; the same weights as CaST-POI; " in card
    assert "- seed 2; HR@5 " in card


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (
            {"method": "revisit"},
            ["None: it only counts.", "No preset", "| HR@5 | 75.00 | 100.00 | 50.00 |"],
        ),
        ({"method": "my-own"}, ["`my-own`: a method that is not installed.", "seed 0."]),
        ({"method": "castpoi"}, ["Its results do not record its preset."]),
        (
            {"method": "castpoi", "known_time": True},
            ["These methods are given the time of each target", "## On t (time known)"],
        ),
    ],
)
def test_cards_of_other_methods(tmp_path: Path, more: dict[str, Any], words: list[str]) -> None:
    card = card_of(tmp_path, **more)
    assert [each for each in words if each not in card] == []


def test_a_count_that_was_made_twice_has_no_deviation(tmp_path: Path) -> None:
    result_of([3.0, 9.0, 9.0, 9.0], method="revisit", seed=1).save(tmp_path / "t" / "b")
    assert "±" not in card_of(tmp_path, method="revisit")
