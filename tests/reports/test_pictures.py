"""Figures: one column wide, the same every time, and safe inside a page."""

import re
import struct
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from castpoi.evaluation.calibration import Calibration, ReliabilityBin
from castpoi.reports.ablation_bars import ablation_bars
from castpoi.reports.evidence import Evidence, read_evidence
from castpoi.reports.picture import Picture
from castpoi.reports.pictures import draw_all
from castpoi.reports.pool_table import pool_of
from castpoi.reports.reliability_lines import pooled
from castpoi.reports.strata_table import strata_of
from tests.reports.result_folders import result_of, write_suite


def drawn_from(evidence: Evidence) -> dict[str, Picture]:
    city = evidence.cities[0]
    return draw_all(evidence, city, strata_of(evidence, city), pool_of(evidence, city))


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Picture]:
    root = tmp_path_factory.mktemp("pictures")
    return drawn_from(read_evidence(write_suite(root / "s", targets=240)))


def test_a_whole_suite_has_all_figures_and_each_is_headed_by_what_it_shows(
    pictures: dict[str, Picture],
) -> None:
    assert list(pictures) == ["ablation", "pool", "strata", "learning", "biases", "reliability"]
    assert pictures["ablation"].finding.startswith("HR@10 loses most without spatial bias: ")
    expected = "CaST-POI trained for 3 epochs; validation is best after epoch 1"
    assert pictures["learning"].finding == expected
    expected = "The reader looks most at visits < 0.5 km from the candidate"
    assert pictures["biases"].finding == expected
    assert re.search("% of revisits and .* % of new places", pictures["strata"].finding)
    assert pictures["pool"].finding == "A pool of 100 keeps the order of all methods"


def test_a_png_is_one_column_wide_at_300_dots_to_the_inch(pictures: dict[str, Picture]) -> None:
    width, _ = struct.unpack(">II", pictures["biases"].png()[16:24])
    assert width == 1050


def test_a_figure_is_the_same_to_the_letter_when_it_is_drawn_again(
    pictures: dict[str, Picture],
) -> None:
    assert pictures["pool"].svg() == pictures["pool"].svg()


def test_figures_of_one_page_share_no_id_and_follow_its_colours(
    pictures: dict[str, Picture],
) -> None:
    seen: set[str] = set()
    for kind in ("biases", "ablation"):
        markup = pictures[kind].inline()
        root = ElementTree.fromstring(markup)
        assert root.get("width") is None
        ids = set(re.findall(r'\bid="([^"]+)"', markup))
        assert not ids & seen
        assert set(re.findall(r'(?:url\(#|href="#)([^")]+)', markup)) <= ids
        seen |= ids
        assert "var(--ink)" in markup
        assert "#ffffff" not in markup


def test_of_many_methods_ours_and_three_others_have_a_colour_in_the_figure_of_pools(
    tmp_path: Path,
) -> None:
    hits = {"castpoi": 9, "core": 8, "sasrec": 7, "narm": 6, "stamp": 5, "markov": 5, "nearest": 1}
    for method, count in hits.items():
        ranks = [1.0] * count + [350.0] * (10 - count)
        result_of(ranks, method=method, seed=1).save(tmp_path / "t" / method)
    picture = drawn_from(read_evidence(tmp_path / "t"))["pool"]
    (axes,) = picture.figure.axes
    _, named = axes.get_legend_handles_labels()
    assert named == ["CaST-POI", "CORE", "SASRec", "NARM"]
    assert [each.get_text() for each in axes.texts] == ["Markov", "Nearest"]  # STAMP ends with one
    assert picture.caption.endswith("Grey lines without a name: STAMP.")


def test_what_the_evidence_does_not_allow_is_not_drawn(tmp_path: Path) -> None:
    result_of([1.0, 30.0], method="revisit", has_top=False).save(tmp_path / "t" / "a")
    assert list(drawn_from(read_evidence(tmp_path / "t"))) == ["strata"]


def test_a_long_name_of_a_variant_leaves_room_for_its_bars(tmp_path: Path) -> None:
    evidence = read_evidence(write_suite(tmp_path / "s"))
    outline = next(table for table in evidence.tables if table.name == "ablation")
    long = "w/o candidate conditioning, positions = absolute, objective = full"
    rows = tuple(
        replace(row, label=long) if row.role == "ablation" else row for row in outline.rows
    )
    picture = ablation_bars(replace(outline, rows=rows), evidence.cities[0])
    assert picture is not None
    bars, _ = picture.figure.axes
    (label,) = bars.get_yticklabels()
    assert label.get_text().splitlines() == [
        "w/o candidate",
        "conditioning, positions =",
        "absolute, objective = full",
    ]


def test_seeds_that_learned_different_things_are_not_smoothed_over(tmp_path: Path) -> None:
    for seed, values in ((1, [1.0, 0.0]), (2, [0.0, 1.0])):
        learned = {"spatial": {"edges": [2.0], "values": values}}
        result = result_of([1.0, 9.0], method="castpoi", seed=seed, learned=learned)
        result.save(tmp_path / "t" / str(seed))
    picture = drawn_from(read_evidence(tmp_path / "t"))["biases"]
    assert picture.finding == "The seeds do not agree which distance counts most"


def test_bins_of_several_seeds_are_weighted_by_their_targets() -> None:
    def seed(n: int, right: float) -> Calibration:
        bins = [ReliabilityBin(low=0.2, high=0.3, n=n, sure=0.25, right=right)]
        return Calibration(
            n=n, bins=bins, expected_error=0.0, sure=0.25, right=right, log_loss=None
        )

    assert pooled([seed(30, 1.0), seed(10, 0.0)]) == [(0.25, 0.75)]
    assert pooled([seed(9, 1.0), seed(10, 0.0)]) == []  # the share of so few is chance
