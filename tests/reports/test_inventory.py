"""Cities, methods and sources of a report, and what it lacks."""

import shutil
from pathlib import Path

import pytest

from castpoi.core.files import write_json
from castpoi.methods.outline import Row
from castpoi.reports.evidence import Evidence, read_evidence
from castpoi.reports.inventory import (
    city_table,
    description_of,
    method_table,
    relative_path,
    source_table,
    what_is_missing,
)
from tests.reports.result_folders import PLACES, result_of, write_suite
from tests.reports.test_analyses import line


def gaps_in(folder: Path) -> list[str]:
    return what_is_missing(read_evidence(folder), has_charts=True)


def test_the_paper_s_counts_are_below_a_city_of_the_paper(tmp_path: Path) -> None:
    result = result_of([1.0] * 1044, method="revisit", users=10, checkins=25)
    result.save(tmp_path / "nyc" / "revisit")
    table = city_table(read_evidence(tmp_path / "nyc"))
    ours, paper = line(table, "nyc"), line(table, "nyc, in the paper")
    assert (ours["Users"].text, ours["Check-ins of a user"].text) == ("10", "2.5")
    assert (ours["Places"].text, ours["Revisits %"].text) == (str(PLACES), "50.0")
    assert (paper["Places"].text, paper["Targets"].text) == ("4,974", "1,044")


def test_every_row_has_a_description_and_its_parameters(evidence: Evidence) -> None:
    table = method_table(evidence)
    ours, variant = line(table, "CaST-POI"), line(table, "w/o spatial bias")
    assert (ours["Parameters"].text, ours["Training"].text) == ("1,234", "2 min")
    assert ours["What it is"].text.endswith("; preset fast")
    assert variant["What it is"].text.endswith("; with spatial_bias=false")
    assert line(table, "Revisit <heuristic> & co_1")["Parameters"].text == "none"
    other = Row(name="x", label="X", method="my-own", role="baseline")
    assert description_of(other) == "a method that is not installed"


def test_sources_link_from_the_report_to_every_result(evidence: Evidence) -> None:
    root = evidence.folder
    table = source_table(evidence, root / "report")
    ours = line(table, "oldtown/castpoi/2")
    assert ours["Result"].link == "../oldtown/castpoi/2/manifest.json"
    assert ours["Training"].text == "2 min"
    assert ours["Log"].link == "../oldtown/castpoi/2/run/log.jsonl"
    assert ours["Config"].link == "../oldtown/castpoi/2/run/config.json"
    anchors = [row[0].anchor for group in table.groups for row in group if row[0].anchor]
    assert anchors.count("source-oldtown-castpoi") == 1
    counted = line(table, "oldtown/revisit/0")
    assert (counted["Training"].text, counted["Log"].text) == ("–", "–")
    assert counted["Config"].link == "../oldtown/revisit/0/manifest.json"
    assert relative_path(root, root / "report") == ".."


def test_a_complete_suite_lacks_nothing(tmp_path: Path) -> None:
    assert gaps_in(write_suite(tmp_path / "s", targets=4)) == []


def test_unfinished_experiments_are_named(tmp_path: Path) -> None:
    waiting = {f"oldtown/caser/{seed}": "waiting" for seed in range(8)}
    unfinished = {"oldtown/narm/1": "failed: no memory", **waiting}
    root = write_suite(tmp_path / "s", targets=4, unfinished=unfinished)
    suite = (root / "suite.json").read_text().replace('"method": "revisit"', '"method": "recent"')
    (root / "suite.json").write_text(suite)
    failed, outdated, waiting_words = gaps_in(root)[:3]
    assert failed == "Failed, so without a result: oldtown/narm/1."
    assert "changed in the suite since: oldtown/revisit/0." in outdated
    assert waiting_words.startswith("Not finished: oldtown/caser/0; ")
    assert "and 2 more." in waiting_words


def test_rows_with_few_seeds_are_named(tmp_path: Path) -> None:
    gaps = gaps_in(write_suite(tmp_path / "one", seeds=(1,), targets=4))
    words = "oldtown: only one seed of SASRec; CaST-POI; w/o spatial bias, so no deviation"
    assert any(gap.startswith(words) for gap in gaps)
    root = write_suite(tmp_path / "s", seeds=(1, 2, 3), targets=4)
    shutil.rmtree(root / "oldtown" / "sasrec" / "3")
    assert "oldtown: only 2 seeds of SASRec, where others have 3." in gaps_in(root)


def test_methods_have_the_trials_of_their_search(tmp_path: Path) -> None:
    town = tmp_path / "town"
    for preset in ("paper", "tuned"):
        result_of([1.0], method="sasrec", seed=1, preset=preset).save(town / preset)
    trials = [{"state": "done", "seconds": 40.0}] * 3 + [{"state": "waiting", "seconds": None}]
    tuned = {"kind": "tune", "method": "sasrec", "preset": "tuned", "trials": trials}
    for name in ("first", "second"):
        (town / "tune" / name).mkdir(parents=True)
        write_json(tmp_path / "town" / "tune" / name / "tune.json", tuned)
    table = method_table(read_evidence(town))
    assert line(table, "SASRec, preset tuned")["Trials"].text == "6 (4 min)"
    assert line(table, "SASRec")["Trials"].text == "–"


def test_a_row_that_one_city_lacks_is_named(tmp_path: Path) -> None:
    root = write_suite(tmp_path / "s", cities=("a", "b"), seeds=(1,), targets=4)
    shutil.rmtree(root / "b" / "sasrec")
    assert "b: no result of SASRec in the table 'Main table'." in gaps_in(root)


@pytest.mark.parametrize(
    ("method", "known_time", "gap"),
    [
        ("castpoi", False, "t: no other method, so no improvement"),
        ("revisit", False, "t: no result of our method, so nothing is tested."),
        ("castpoi", True, "t (time known): nothing is tested: "),
    ],
)
def test_why_nothing_is_tested(tmp_path: Path, method: str, known_time: bool, gap: str) -> None:
    result = result_of([1.0, 2.0], method=method, known_time=known_time)
    result.save(tmp_path / "t" / "a")
    assert sum(each.startswith(gap) for each in gaps_in(tmp_path / "t")) == 1
