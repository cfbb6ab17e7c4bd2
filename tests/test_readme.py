"""The numbers of the README are those of the committed results."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_the_table_of_the_readme_is_the_table_of_the_results() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("| method |"))
    metrics = [cell.strip() for cell in lines[start].strip("|").split("|")][1:]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in lines[start + 2 :]
        if line.startswith("|")
    ]
    methods = {folder.name for folder in (ROOT / "results" / "nyc").iterdir()}
    table = {row[0]: row[1:] for row in rows if row[0] in methods}
    assert set(table) == methods
    for method, cells in table.items():
        folder = ROOT / "results" / "nyc" / method
        result = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
        for metric, cell in zip(metrics, cells, strict=True):
            stratum = result["strata"]["new"] if metric.startswith("new ") else result["metrics"]
            assert cell == f"{100 * stratum[metric.removeprefix('new ')]:.2f}", (method, metric)


def test_the_speed_told_in_the_readme_is_the_measured_one() -> None:
    told = (ROOT / "README.md").read_text(encoding="utf-8")
    measured = json.loads((ROOT / "results" / "bench-data.json").read_text(encoding="utf-8"))
    prepare = measured["prepare"]
    found = re.search(r"takes ([\d.]+) s on two cores, ([\d.]+) times .*?(\d+) % of", told, re.S)
    assert found is not None
    assert found[1] == f"{prepare['our_seconds']:.1f}"
    assert found[2] == f"{prepare['times_faster']:.1f}"
    assert found[3] == f"{100 * prepare['share_of_memory']:.0f}"
