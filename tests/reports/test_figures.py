"""Figures: one column wide, the same every time, and safe inside a page."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from castpoi.evaluation.beyond import Calibration, ReliabilityBin
from castpoi.model.config import ModelConfig
from castpoi.model.terms.reader import SpatialBias
from castpoi.reports.analyses import biases_of
from castpoi.reports.evidence import Evidence, read_evidence
from castpoi.reports.figures import ablation_bars, mean_by_epoch, pooled
from castpoi.reports.report import Report, make_report
from castpoi.reports.style import Chart
from tests.reports.result_folders import result_of, write_suite


def charts_of(report: Report) -> dict[str, Chart]:
    """The charts of a report on one city by name, without the city."""
    return {chart.name.removesuffix(f"-{chart.city}"): chart for chart in report.charts}


def drawn_from(evidence: Evidence) -> dict[str, Chart]:
    return charts_of(make_report(evidence, evidence.folder / "report", draws=9))


@pytest.fixture(scope="module")
def charts(report: Report) -> dict[str, Chart]:
    return charts_of(report)


def test_a_whole_suite_has_all_figures(charts: dict[str, Chart]) -> None:
    assert list(charts) == ["ablation", "pool", "strata", "learning", "biases", "reliability"]
    assert re.search("% of revisits and .* % of new places", charts["strata"].headline)
    assert charts["pool"].headline == "A pool of 100 reverses 0 of 3 pairs of methods"


def test_figures_of_one_page_share_no_id_and_follow_its_colours(
    charts: dict[str, Chart],
) -> None:
    seen: set[str] = set()
    for kind in ("biases", "ablation"):
        markup = charts[kind].inline()
        root = ElementTree.fromstring(markup)
        assert root.get("width") is None
        ids = set(re.findall(r'\bid="([^"]+)"', markup))
        assert not ids & seen
        assert set(re.findall(r'(?:url\(#|href="#)([^")]+)', markup)) <= ids
        seen |= ids
        assert "var(--ink)" in markup
        assert "#ffffff" not in markup


def test_ours_and_three_other_methods_have_a_colour_in_the_pool_figure(
    tmp_path: Path,
) -> None:
    hits = {"castpoi": 9, "core": 8, "sasrec": 7, "narm": 6, "stamp": 5, "markov": 5, "nearest": 1}
    for method, count in hits.items():
        ranks = [1.0] * count + [350.0] * (10 - count)
        result_of(ranks, method=method, seed=1).save(tmp_path / "t" / method)
    chart = drawn_from(read_evidence(tmp_path / "t"))["pool"]
    (axes,) = chart.figure.axes
    _, named = axes.get_legend_handles_labels()
    assert named == ["CaST-POI", "CORE", "SASRec", "NARM"]
    assert [each.get_text() for each in axes.texts] == ["Markov", "Nearest"]  # STAMP ends with one
    assert chart.caption.endswith("Grey lines without a name: STAMP.")


def test_figures_without_data_are_left_out(tmp_path: Path) -> None:
    result_of([1.0, 30.0], method="revisit").save(tmp_path / "t" / "a")
    assert list(drawn_from(read_evidence(tmp_path / "t"))) == ["pool", "strata"]


def test_long_names_of_variants_are_wrapped(tmp_path: Path) -> None:
    evidence = read_evidence(write_suite(tmp_path / "s"))
    outline = next(table for table in evidence.tables if table.name == "ablation")
    long = "w/o candidate conditioning, positions = absolute, objective = full"
    rows = tuple(
        replace(row, label=long) if row.role == "ablation" else row for row in outline.rows
    )
    chart = ablation_bars(replace(outline, rows=rows), evidence.cities[0])
    assert chart is not None
    bars, _ = chart.figure.axes
    (label,) = bars.get_yticklabels()
    assert label.get_text().splitlines() == [
        "w/o candidate",
        "conditioning, positions =",
        "absolute, objective = full",
    ]


def test_long_names_fit_into_the_legend_and_dollars_are_no_formula(tmp_path: Path) -> None:
    suite = write_suite(tmp_path / "s")
    path = suite / "suite.json"
    long = "SASRec with the very long name that somebody gave it, which costs $\\\\none$"
    path.write_text(path.read_text().replace('"SASRec"', f'"{long}"'))
    charts = drawn_from(read_evidence(suite))
    for kind in ("pool", "strata", "learning", "reliability"):
        figure = charts[kind].figure
        (legend,) = figure.legends
        extent = legend.get_window_extent()
        assert extent.x0 >= 0
        assert extent.x1 <= figure.bbox.width
        names = " ".join(each.get_text().replace("\n", " ") for each in legend.texts)
        assert "costs $\\none$" in names


def test_the_start_of_a_bias_is_that_of_the_model(tmp_path: Path) -> None:
    values = [1.1, 0.4, -0.2, -1.0]
    learned = {"spatial": {"edges": [0.5, 2.0, 5.0], "values": values}}
    trained = {"config": {"model": ModelConfig.preset("fast").to_dict()}}
    result = result_of([1.0, 9.0], method="castpoi", seed=1, learned=learned, trained=trained)
    result.save(tmp_path / "t" / "one")
    evidence = read_evidence(tmp_path / "t")
    (bias,) = biases_of(evidence.results[0]).values()
    untrained = SpatialBias(edges_km=(0.5, 2.0, 5.0), nearest=1.0).weight
    assert bias.start == pytest.approx(untrained.tolist())


def test_curves_end_where_the_first_seed_stopped_and_show_few_methods(tmp_path: Path) -> None:
    seeds = [[{"epoch": 1, "loss": 4.0}, {"epoch": 2, "loss": 2.0}], [{"epoch": 1, "loss": 2.0}]]
    assert mean_by_epoch(seeds, "loss") == ([1], [3.0])
    for method in ("core", "sasrec", "narm", "stamp", "caser", "srgnn", "castpoi"):
        folder = tmp_path / "t" / method
        result_of([1.0] * 20, method=method, seed=1).save(folder)
        event = {"event": "epoch finished", "epoch": 1, "loss": 1.0, "metrics": {"HR@10": 0.2}}
        (folder / "run").mkdir()
        (folder / "run" / "log.jsonl").write_text(json.dumps(event) + "\n")
    chart = drawn_from(read_evidence(tmp_path / "t"))["learning"]
    assert len(chart.figure.axes[0].lines) == 1 + 4
    assert "Not drawn, because weaker: " in chart.caption


def test_bars_compare_equally_many_seeds(tmp_path: Path) -> None:
    root = write_suite(tmp_path / "s", seeds=(1, 2), targets=60)
    shutil.rmtree(root / "oldtown" / "no-spatial-bias" / "2")
    evidence = read_evidence(root)
    (outline,) = [table for table in evidence.tables if table.is_ablation]
    chart = ablation_bars(outline, evidence.cities[0])
    assert chart is not None
    full, variant = (
        100 * (evidence.cities[0].of(name)[0].result.metrics["HR@10"] or 0.0)
        for name in ("castpoi", "no-spatial-bias")
    )
    (bar,) = [each for each in chart.figure.axes[0].patches if each.get_height() == 0.62]  # type: ignore[attr-defined]
    assert bar.get_width() == pytest.approx(variant - full)  # type: ignore[attr-defined]


def test_bins_of_several_seeds_are_weighted_by_their_targets() -> None:
    def seed(n: int, right: float) -> Calibration:
        bins = [ReliabilityBin(low=0.2, n=n, confidence=0.25, accuracy=right)]
        return Calibration(n=n, bins=bins, expected_error=0.0, confidence=0.25, accuracy=right)

    assert pooled([seed(30, 1.0), seed(10, 0.0)]) == [(0.25, 0.75)]
    assert pooled([seed(9, 1.0), seed(10, 0.0)]) == []  # too few targets
