"""Two seeds of one method: how often a test tells them apart, and that the docs say so."""

from pathlib import Path

import pytest

from castpoi.evaluation.significance import ALPHA
from castpoi.reports.evidence import read_evidence
from castpoi.reports.seed_noise import SeedNoise, p_of_pairs, seed_noise
from tests.reports.result_folders import result_of

ROOT = Path(__file__).parents[2]


def test_pairs_of_seeds_are_counted_and_those_that_differ(tmp_path: Path) -> None:
    town = tmp_path / "town"
    for seed, ranks in enumerate(([1.0] * 30, [1.0] * 30, [2.0] * 30)):
        result_of(ranks, method="castpoi", seed=seed).save(town / str(seed))
    result_of([9.0] * 30, method="revisit").save(town / "revisit")
    evidence = read_evidence(town)
    assert p_of_pairs(evidence.cities[0].contenders["castpoi"]) == pytest.approx(
        [1.0, 4.320463e-08, 4.320463e-08]  # thirty differences of one size, all of one sign
    )
    noise = seed_noise(evidence)
    assert (noise.pairs, noise.differing) == (3, 2)
    assert "differ with p < 0.05 by MRR (Wilcoxon, uncorrected) in 2 of 3 pairs" in noise.words
    assert SeedNoise(0, 0).words == ""


def test_the_docs_tell_how_often_seeds_of_ours_differ_on_new_york() -> None:
    nyc = next(city for city in read_evidence(ROOT / "results").cities if city.name == "nyc")
    p = [p for name in ("castpoi", "castpoi-next") for p in p_of_pairs(nyc.contenders[name])]
    told = f"by MRR in {sum(each < ALPHA for each in p)} of {len(p)} pairs"
    assert told in " ".join((ROOT / "docs" / "statistics.md").read_text(encoding="utf-8").split())
