"""The revisit heuristic on the real New York check-ins, against the paper's own values."""

from pathlib import Path

import pytest

from tests.conftest import CommandLine

PAPER = {
    **{"HR@1": 14.75, "HR@5": 41.19, "HR@10": 54.60},
    **{"NDCG@5": 28.66, "NDCG@10": 33.05, "MRR": 26.94},
}
TOLERANCE = {"HR@1": 0.7}


@pytest.mark.realdata
def test_the_revisit_heuristic_comes_within_the_papers_values_on_new_york(
    castpoi: CommandLine, shared_data: Path, tmp_path: Path
) -> None:
    source, city = shared_data / "nyc.csv.gz", tmp_path / "nyc"
    assert castpoi("data", "prepare", source, "--recipe", "nyc", "--out", city).code == 0
    words = ("evaluate", "--city", city, "--model", "revisit", "--out", tmp_path / "result")
    ended = castpoi(*words, "--json")
    assert ended.code == 0
    assert ended.json["n"] == 1044
    for metric, published in PAPER.items():
        ours = 100 * ended.json["metrics"][metric]
        assert ours == pytest.approx(published, abs=TOLERANCE.get(metric, 0.3)), metric
