"""The numbers of the README are those of the committed results."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tools.result_tables import PAGES, README_ROWS, ROOT, with_tables

from castpoi.core.files import write_json
from castpoi.experiments.suite import read_suite
from castpoi.reports.evidence import Evidence
from castpoi.reports.metrics import metric_table
from castpoi.reports.significance import Verdicts
from castpoi.reports.table import markdown
from tests.conftest import CommandLine


def results_by_method() -> dict[str, list[dict[str, Any]]]:
    """Method -> the metrics of its seeds, by the names of folders (METHOD or METHOD-SEED)."""
    found: dict[str, list[dict[str, Any]]] = {}
    for folder in sorted((ROOT / "results" / "nyc").iterdir()):
        method = re.sub(r"-\d+$", "", folder.name)
        metrics = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
        found.setdefault(method, []).append(metrics)
    return found


def test_the_tables_of_all_pages_are_up_to_date(committed: Evidence) -> None:
    for page in PAGES:
        written = with_tables(page, committed)
        assert written == (ROOT / page).read_text(encoding="utf-8"), f"{page}: run 'make tables'"


def test_the_table_of_all_methods_is_the_mean_of_the_results() -> None:
    lines = (ROOT / "docs" / "results.md").read_text(encoding="utf-8").splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("| method |"))
    header, _, *rows = (
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in lines[start : lines.index("<!-- end -->")]
    )
    measured = results_by_method()
    tables = {row[0]: dict(zip(header, row, strict=True)) for row in rows}
    assert tables.keys() >= {"castpoi", "castpoi-next", "sasrec", "core", "revisit", "popularity"}
    for method, cells in tables.items():
        seeds = measured.get(method, [])
        assert cells["seeds"].count("](") == len(seeds) or ", " in method
        for metric in header[2:8] if seeds else []:
            name = metric.removeprefix("new ")
            of = [seed["strata"]["new"] if name != metric else seed["metrics"] for seed in seeds]
            mean = 100 * sum(stratum[name] for stratum in of) / len(of)
            assert cells[metric].split()[0] == f"{mean:.2f}", (method, metric)


def test_the_first_paragraph_of_the_readme_has_the_measured_values(committed: Evidence) -> None:
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    found = re.search(r"top ten ([\d.]+) % of the time; the best .* reaches ([\d.]+) %", text)
    assert found is not None
    nyc = next(city for city in committed.cities if city.name == "nyc")
    strongest = committed.strongest(nyc, "HR@10")
    assert strongest is not None
    ours, theirs = (100 * nyc.mean(name, "HR@10") for name in ("castpoi-next", strongest.name))
    assert (found[1], found[2]) == (f"{ours:.1f}", f"{theirs:.1f}")


def test_every_experiment_of_the_readme_is_in_the_committed_results(
    castpoi: CommandLine, committed: Evidence, tmp_path: Path
) -> None:
    assert [row.name for row in read_suite("readme").rows] == list(README_ROWS)
    (tmp_path / "nyc").mkdir()
    nyc = next(city for city in committed.cities if city.name == "nyc")
    manifest = {"kind": "city", "fingerprint": nyc.fingerprint, "train": 99_907}
    write_json(tmp_path / "nyc" / "manifest.json", manifest)
    words = ["reproduce", tmp_path / "nyc", "--suite", "readme", "--out", ROOT / "results"]
    planned = castpoi(*words, "--dry-run", "--any-code", "--json")
    assert planned.code == 0, planned.err
    assert planned.json["to_run"] == 0
    named = [(each["row"], each["seed"]) for each in planned.json["experiments"]]
    used = [(row, each.seed) for row in README_ROWS for each in nyc.of(row)]
    assert sorted(named) == sorted(used)


def test_a_page_without_a_place_for_its_table_is_refused(
    monkeypatch: pytest.MonkeyPatch, committed: Evidence
) -> None:
    monkeypatch.setitem(PAGES, "CHANGELOG.md", PAGES["README.md"])
    message = "CHANGELOG.md has 0 places for the table 'headline', not one"
    with pytest.raises(SystemExit, match=message):
        with_tables("CHANGELOG.md", committed)


def test_the_committed_report_is_made_from_the_committed_results() -> None:
    results = ROOT / "results"
    report = json.loads((results / "report" / "manifest.json").read_text(encoding="utf-8"))
    listed = {(results / "report" / path).resolve() for path in report["results"]}
    suites = {path.parent for path in results.rglob("suite.json")}  # these have their own report
    folders = {path.parent for path in results.rglob("ranks.parquet")}
    assert listed == {folder for folder in folders if not suites & set(folder.parents)}


def test_the_committed_tables_are_those_of_the_committed_results(
    committed: Evidence, committed_verdicts: Verdicts
) -> None:
    for outline in committed.tables:
        made = markdown(metric_table(outline, committed, committed_verdicts))
        path = ROOT / "results" / "report" / "tables" / f"{outline.name}.md"
        written = path.read_text(encoding="utf-8") if path.is_file() else ""
        # stars and faint leads need all samples of the bootstrap, which this test does not make
        assert made.replace(r"\*", "") == written.replace(r"\*", ""), (
            f"{path.name}: run 'castpoi report results --overwrite'"
        )


def test_results_with_known_time_are_in_folders_of_their_own() -> None:
    for manifest in (ROOT / "results").rglob("manifest.json"):
        is_known_time = json.loads(manifest.read_text(encoding="utf-8")).get("known_time", False)
        is_apart = "known-time" in manifest.relative_to(ROOT / "results").parts
        assert is_known_time == is_apart, manifest


def test_the_speed_of_preparation_on_the_page_is_the_measured_one() -> None:
    text = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    measured = json.loads((ROOT / "results" / "bench-data.json").read_text(encoding="utf-8"))
    prepare = measured["prepare"]
    found = re.search(r"takes ([\d.]+) s on two cores, ([\d.]+) times .*?(\d+) % of", text, re.S)
    assert found is not None
    assert found[1] == f"{prepare['our_seconds']:.1f}"
    assert found[2] == f"{prepare['times_faster']:.1f}"
    assert found[3] == f"{100 * prepare['share_of_memory']:.0f}"
    large = json.loads((ROOT / "results" / "bench-large.json").read_text(encoding="utf-8"))
    largest = large["prepare-large"]
    sentence = (
        f"{largest['rows'] // 1_000_000} million take {largest['our_seconds']:.0f} s and "
        f"{largest['our_peak_gb']:.1f} GB"
    )
    assert sentence in " ".join(text.split())


def test_the_speed_of_answers_on_the_page_is_the_measured_one() -> None:
    text = " ".join((ROOT / "docs" / "results.md").read_text(encoding="utf-8").split())
    path = ROOT / "results" / "bench-serving.json"
    serve = json.loads(path.read_text(encoding="utf-8"))["serve"]
    small, large = (serve[f"castpoi-next_{places}_1_client"] for places in (5_000, 100_000))
    around, around_reader = (
        serve[f"{name}_5000_framework"]["overhead_ms"] for name in ("castpoi-next", "castpoi")
    )
    assert (
        f"in {small['p50_ms']:.1f} ms by `castpoi-next` (of 100,000: {large['p50_ms']:.1f} ms"
        in text
    )
    assert f"{around:.1f} ms of that is spent around the model" in text
    short = serve["shortlist"]
    found = 100 * short["anywhere_found"]
    sentence = (
        f"takes {short['as_served_ms']:.1f} ms, and {around_reader:.1f} ms around the model, with "
        f"a shortlist of {short['size']} places, which contains {found:.1f} % of the exact top ten "
        f"(trained on New York). Exact scoring of all places takes {short['exact_ms']:.0f} ms"
    )
    assert sentence in text
