"""The numbers of the README are those of the committed results."""

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def results_by_method() -> dict[str, list[dict[str, Any]]]:
    """Method -> the metrics of its seeds."""
    found: dict[str, list[dict[str, Any]]] = {}
    for folder in sorted((ROOT / "results" / "nyc").iterdir()):
        method = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["method"]
        metrics = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
        found.setdefault(method, []).append(metrics)
    return found


def test_the_table_of_the_readme_is_the_mean_of_the_results() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("| method |"))
    header, *rows = (
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in lines[start:]
        if line.startswith("|")
    )
    table = {row[0]: row[1:] for row in rows}
    for method, seeds in results_by_method().items():
        for metric, cell in zip(header[1:], table[method], strict=True):
            name = metric.removeprefix("new ")
            chosen = [
                seed["strata"]["new"] if name != metric else seed["metrics"] for seed in seeds
            ]
            mean = 100 * sum(stratum[name] for stratum in chosen) / len(chosen)
            assert cell == f"{mean:.2f}", (method, metric)


def test_the_committed_report_is_made_from_the_committed_results() -> None:
    results = ROOT / "results"
    report = json.loads((results / "report" / "manifest.json").read_text(encoding="utf-8"))
    told = {(results / "report" / path).resolve() for path in report["results"]}
    assert told == {path.parent for path in results.rglob("ranks.parquet")}


def test_no_number_of_known_time_stands_beside_the_others() -> None:
    for manifest in (ROOT / "results").rglob("manifest.json"):
        is_told = json.loads(manifest.read_text(encoding="utf-8")).get("known_time", False)
        is_apart = "known-time" in manifest.relative_to(ROOT / "results").parts
        assert is_told == is_apart, manifest


def test_the_speed_told_in_the_readme_is_the_measured_one() -> None:
    told = (ROOT / "README.md").read_text(encoding="utf-8")
    measured = json.loads((ROOT / "results" / "bench-data.json").read_text(encoding="utf-8"))
    prepare = measured["prepare"]
    found = re.search(r"takes ([\d.]+) s on two cores, ([\d.]+) times .*?(\d+) % of", told, re.S)
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
    assert sentence in " ".join(told.split())
