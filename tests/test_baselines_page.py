"""docs/baselines.md lists every baseline, and its numbers are those of the results."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from statistics import mean

import pytest

from castpoi.methods.registry import METHODS
from castpoi.training.train import configs_for

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "baselines.md").read_text(encoding="utf-8")


def table(first_column: str, section: str) -> Iterator[list[str]]:
    """The cells of a table's rows, its header first."""
    lines = PAGE.split(f"## {section}")[1].splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith(first_column))
    for line in lines[begin:]:
        if not line.startswith("|"):
            return
        yield [cell.strip(" `") for cell in line.strip("|").split("|")]


@pytest.mark.parametrize("name", [name for name in METHODS.names if "castpoi" not in name])
def test_the_page_names_every_method_but_ours(name: str) -> None:
    assert f"`{name}`" in PAGE


def test_its_accuracy_is_the_mean_of_all_committed_seeds() -> None:
    _, _, *rows = table("| method |", "Accuracy, against the paper's")
    results = ROOT / "results" / "nyc"
    for name, seeds, ours, *_ in rows:
        folders = sorted(results.glob(f"{name}-[0-9]*"))
        assert re.findall(r"\d+", seeds) == [folder.name.rpartition("-")[2] for folder in folders]
        reached = [json.loads((each / "metrics.json").read_text())["metrics"] for each in folders]
        if reached:
            means = [100 * mean(each[metric] for each in reached) for metric in ("HR@10", "MRR")]
            assert ours == " / ".join(f"{value:.2f}" for value in means), name


@pytest.mark.parametrize("record", sorted((ROOT / "results" / "tune").glob("*/*/tune.json")))
def test_the_preset_tuned_has_the_settings_that_the_search_found(record: Path) -> None:
    search = json.loads(record.read_text())
    shape, plan = configs_for(METHODS.named(search["method"]), search["preset"], {})
    preset = {name: str(value) for name, value in (vars(shape) | vars(plan)).items()}
    best = search["trials"][0]
    assert (search["preset"], best["state"]) == ("tuned", "done")
    for name, value in (search["settings"] | best["settings"]).items():
        assert float(preset[name]) == float(value), name
    reached = [each["validation"]["MRR"] for each in search["trials"] if each["validation"]]
    assert len(reached) >= 2
    assert max(reached) == best["validation"]["MRR"]


def test_its_speed_is_the_measured_one() -> None:
    measured = json.loads((ROOT / "results" / "bench-baselines.json").read_text())["baselines"]
    (_, *names), _, *rows = table("| | `sasrec`", "Speed, against the oracle's")
    assert set(names) == set(measured)
    kinds = {
        "ours": "our_seconds",
        "RecBole": "oracle_seconds",
        "times faster": "times_faster",
        "our memory, GB": "our_peak_gb",
    }
    for label, *cells in rows:
        for name, cell in zip(names, cells, strict=True):
            digits = len(cell.partition(".")[2])
            assert cell == f"{measured[name][kinds[label]]:.{digits}f}", (label, name)
