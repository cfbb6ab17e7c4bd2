"""Runs with other settings than their preset are variants, not more seeds of the method."""

from pathlib import Path
from typing import Any

import pytest

from castpoi.baselines.sasrec import SasRecConfig
from castpoi.model.config import ModelConfig
from castpoi.reports.outline import row_of_run
from castpoi.reports.report_folder import write_report
from castpoi.reports.variants import changes_of
from castpoi.training.config import CastPoiTraining, SequenceTraining
from tests.reports.browser import chromium


def trained(preset: str, **changes: Any) -> dict[str, Any]:
    model = ModelConfig.preset(preset).to_dict()
    settings = CastPoiTraining.preset(preset).to_dict()
    for name, value in changes.items():
        assert name in model or name in settings
        (model if name in model else settings)[name] = value
    return {"config": {"model": model, "training": {"settings": settings}}}


def sasrec_config(preset: str) -> dict[str, Any]:
    settings = SequenceTraining.preset(preset, method="sasrec").to_dict()
    return {"model": SasRecConfig.preset(preset).to_dict(), "training": {"settings": settings}}


def test_a_run_as_its_preset_says_is_no_variant_whatever_its_threads() -> None:
    assert changes_of("castpoi", trained("fast", threads=1)) == {}
    assert changes_of("castpoi-next", trained("next")) == {}


def test_a_variant_tells_what_was_changed() -> None:
    told = changes_of("castpoi", trained("fast", candidate_conditioning=False, epochs=6))
    assert told == {"candidate_conditioning": "false", "epochs": "6"}
    row = row_of_run("castpoi", told)
    assert row.name == "castpoi-candidate_conditioning=false-epochs=6"
    assert row.label == "CaST-POI w/o candidate conditioning, epochs = 6"
    assert row.role == "ablation"
    row = row_of_run("castpoi", {"positions": "absolute", **told})
    assert row.label == "CaST-POI, positions = absolute, w/o candidate conditioning, epochs = 6"


def test_one_part_less_of_the_papers_model_is_called_as_in_the_papers_ablation() -> None:
    row = row_of_run("castpoi", {"spatial_bias": "false"})
    assert (row.name, row.label) == ("no-spatial-bias", "CaST-POI w/o spatial bias")
    other = row_of_run("castpoi-next", {"distance_gate": "false"})
    assert other.name == "castpoi-next-distance_gate=false"
    assert other.label == "CaST-POI next w/o distance gate"


def test_another_preset_is_told_by_its_name() -> None:
    assert changes_of("castpoi", trained("paper")) == {"preset": "paper"}


def test_a_run_from_before_candidates_could_look_away_is_a_variant_now() -> None:
    old = trained("fast")
    del old["config"]["model"]["null_attention"]
    row = row_of_run("castpoi", changes_of("castpoi", old))
    assert changes_of("castpoi-next", trained("next")) == {}
    assert (row.name, row.label) == ("no-null-attention", "CaST-POI w/o null attention")


def test_a_setting_that_came_later_makes_no_variant_of_an_older_run() -> None:
    old = trained("fast")
    del old["config"]["model"]["reader_forecast"]
    assert changes_of("castpoi", old) == {}


def test_a_tuned_baseline_is_not_one_more_seed_of_the_papers() -> None:
    told = changes_of("sasrec", {"config": sasrec_config("tuned")})
    assert told == {"preset": "tuned"}
    row = row_of_run("sasrec", told)
    assert (row.label, row.role) == ("SASRec, preset tuned", "baseline")
    assert changes_of("sasrec", {"config": sasrec_config("paper")}) == {}


def test_a_run_without_a_reader_has_nothing_to_look_away_from() -> None:
    old = trained("fast", candidate_conditioning=False)
    del old["config"]["model"]["null_attention"]
    row = row_of_run("castpoi", changes_of("castpoi", old))
    assert (row.name, row.label) == (
        "no-candidate-conditioning",
        "CaST-POI w/o candidate conditioning",
    )


def test_what_a_method_is_defined_by_is_no_change_of_it() -> None:
    own = {"spatial_bias": False, "temporal_bias": False, "revisit_gate": False}
    assert changes_of("target-attention", trained("fast", **own)) == {}
    told = changes_of("target-attention", trained("fast", null_attention=False, **own))
    assert told == {"null_attention": "false"}
    assert row_of_run("target-attention", told).role == "baseline"


@pytest.mark.parametrize("method", ["revisit", "my-own"])
def test_of_other_methods_nothing_is_known(method: str) -> None:
    assert changes_of(method, trained("fast", epochs=9)) == {}
    assert row_of_run(method, {}).name == method


def test_the_results_in_this_repository_become_a_report_whose_tables_fit_a_desk(
    tmp_path: Path,
) -> None:
    write_report(Path(__file__).parents[2] / "results", tmp_path / "report", draws=50)
    with chromium() as browser:
        tab = browser.new_page(viewport={"width": 1280, "height": 900})
        tab.goto((tmp_path / "report" / "report.html").as_uri())
        too_wide = tab.evaluate(
            "[...document.querySelectorAll('.scroll')].filter((each) => !each.closest('details'))"
            ".filter((each) => each.scrollWidth > each.clientWidth)"
            ".map((each) => each.closest('section').id)"
        )
    assert too_wide == []
