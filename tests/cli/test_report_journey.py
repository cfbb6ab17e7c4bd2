"""`castpoi report`, as a person would type it."""

from pathlib import Path

from castpoi.reports.analyses import biases_of
from castpoi.reports.evidence import read_evidence
from tests.conftest import CommandLine, documented_keys
from tests.reports.result_folders import result_of, write_suite


def test_a_suite_becomes_a_report_beside_its_results(castpoi: CommandLine, tmp_path: Path) -> None:
    root = write_suite(tmp_path / "evidence", targets=20)
    made = castpoi("report", root, "--json").json
    assert made.keys() == documented_keys("report")
    assert made["out"] == str(root / "report")
    assert Path(made["page"]).is_file()
    assert made["rows"] == ["sasrec", "revisit", "castpoi", "no-spatial-bias"]
    assert (made["results"], made["tests"]) == (7, 6)
    assert {"main", "ablation", "significance", "cities", "sources"} <= set(made["tables"])
    assert "pool-oldtown" in made["figures"]


def test_plain_results_can_be_reported_elsewhere(castpoi: CommandLine, tmp_path: Path) -> None:
    result_of([1.0, 2.0], method="revisit").save(tmp_path / "town" / "revisit")
    words = ("report", tmp_path / "town", "--out", tmp_path / "page")
    ended = castpoi(*words)
    assert ended.code == 0
    assert "1 result of 1 row on town" in ended.out
    assert "missing: town: no result of our method" in ended.out
    assert (tmp_path / "page" / "tables" / "main.csv").is_file()
    assert [path.name for path in (tmp_path / "town").iterdir()] == ["revisit"]
    again = castpoi(*words)
    assert again.code == 1
    assert "already holds a report; choose another --out or replace it" in again.err
    assert castpoi(*words, "--overwrite").code == 0


def test_the_biases_of_the_reader_are_stored_in_the_result(
    castpoi: CommandLine, run_folder: Path, tmp_path: Path
) -> None:
    assert castpoi("evaluate", run_folder, "--out", tmp_path / "results" / "castpoi").code == 0
    (own,) = read_evidence(tmp_path / "results").results
    biases = biases_of(own)
    assert list(biases) == ["spatial", "temporal"]
    assert len(biases["spatial"].values) == len(biases["spatial"].buckets) == 6
