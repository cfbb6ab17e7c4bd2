"""Model cards: what it is, how good, how trained, and how to make it again."""

import json
from pathlib import Path

from castpoi.model.config import ModelConfig
from castpoi.reports.evidence import read_evidence
from castpoi.reports.model_card import model_card
from tests.reports.result_folders import result_of, write_suite


def test_the_card_of_a_learned_method_tells_its_training(tmp_path: Path) -> None:
    evidence = read_evidence(write_suite(tmp_path / "s"))
    variant = next(row for row in evidence.rows if row.name == "no-spatial-bias")
    card = model_card(evidence, variant)
    assert card.startswith(
        "# w/o spatial bias\n\n`castpoi`: the paper's: every candidate reads the history"
    )
    assert "Preset: fast." in card
    assert "Changed: `spatial_bias=false`." in card
    assert "In percent over seeds 1, 2." in card
    own = next(each for each in evidence.findings if each.row == variant and each.seed == 1)
    hits = f"{100 * (own.result.metrics['HR@5'] or 0):.2f}"
    assert f"\n- seed 1; HR@5 {hits}, HR@10 " in card
    assert "; 1,234 parameters; 3 epochs, last loss 1.667; 90 s of training;" in card
    assert "Calibration error of its softmax:" in card
    assert "castpoi train oldtown --model castpoi --seed 2" in card
    assert "| targets | 120 | 60 | 60 |" in card


def test_a_card_tells_whose_weights_a_row_has_borrowed(tmp_path: Path) -> None:
    root = write_suite(tmp_path / "s", targets=4)
    runs = [root / "oldtown" / row / "1" / "run" for row in ("castpoi", "no-spatial-bias")]
    for run in runs:
        told = {"kind": "run", "wall_seconds": 90.0, "started_utc": "noon"}
        (run / "manifest.json").write_text(json.dumps(told))
    evidence = read_evidence(root)
    (row,) = [row for row in evidence.rows if row.name == "no-spatial-bias"]
    card = model_card(evidence, row)
    assert "- seed 1; the same weights as CaST-POI; " in card
    assert "- seed 2; HR@5 " in card


def test_the_card_of_a_heuristic_says_that_it_only_counts(tmp_path: Path) -> None:
    result_of([1.0, 2.0, 4.0, 20.5], method="revisit").save(tmp_path / "t" / "revisit")
    evidence = read_evidence(tmp_path / "t")
    card = model_card(evidence, evidence.rows[0])
    assert "None: it only counts." in card
    assert "no probabilities" in card
    assert "No preset: it only counts." in card
    assert "| HR@5 | 75.00 | 100.00 | 50.00 |" in card
    assert "In percent over one count, without chance." in card


def test_without_a_suite_the_preset_is_that_of_the_settings_of_the_run(tmp_path: Path) -> None:
    trained = {"config": {"model": ModelConfig.preset("fast").to_dict()}}
    result_of([1.0], method="castpoi", trained=trained).save(tmp_path / "t" / "a")
    evidence = read_evidence(tmp_path / "t")
    card = model_card(evidence, evidence.rows[0])
    assert "Preset: fast." in card
    assert "trained with preset fast here, which is not the letter of the paper" in card
    result_of([1.0], method="castpoi").save(tmp_path / "s" / "a")
    silent = read_evidence(tmp_path / "s")
    assert "Its results do not tell its preset." in model_card(silent, silent.rows[0])


def test_a_method_nobody_knows_has_a_card_too(tmp_path: Path) -> None:
    result_of([1.0], method="my-own").save(tmp_path / "t" / "a")
    evidence = read_evidence(tmp_path / "t")
    card = model_card(evidence, evidence.rows[0])
    assert "`my-own`: a method this castpoi does not know." in card
    assert "In percent over seed 0." in card


def test_the_card_of_a_method_that_knows_the_time_says_so(tmp_path: Path) -> None:
    result_of([1.0, 2.0], method="castpoi", known_time=True).save(tmp_path / "t" / "a")
    evidence = read_evidence(tmp_path / "t")
    card = model_card(evidence, evidence.rows[0])
    assert "Told when each target was: these numbers are not to be set beside" in card
    assert "## On t (time known)" in card
