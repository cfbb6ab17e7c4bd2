"""What a report lacks is said, with the way out."""

import shutil
from pathlib import Path
from typing import Any

from castpoi.model.config import ModelConfig
from castpoi.reports.evidence import read_evidence
from castpoi.reports.metric_table import shown_in
from castpoi.reports.missing import what_is_missing
from tests.reports.result_folders import result_of, write_suite


def gaps_in(folder: Path, *, has_figures: bool = True) -> list[str]:
    return what_is_missing(read_evidence(folder), has_figures=has_figures)


def test_a_whole_suite_lacks_nothing(tmp_path: Path) -> None:
    assert not gaps_in(write_suite(tmp_path / "s", targets=4))


def test_failed_and_unfinished_experiments_are_named(tmp_path: Path) -> None:
    waiting = {f"oldtown/caser/{seed}": "waiting" for seed in range(8)}
    unfinished = {"oldtown/narm/1": "failed: no memory", **waiting}
    gaps = gaps_in(write_suite(tmp_path / "s", targets=4, unfinished=unfinished))
    assert gaps[0] == "Failed, so without a result: oldtown/narm/1."
    assert gaps[1].startswith("Not finished: oldtown/caser/0; ")
    assert gaps[1].endswith("and 2 more. 'castpoi reproduce' goes on with them.")


def test_one_seed_has_no_deviation_and_says_so(tmp_path: Path) -> None:
    gaps = gaps_in(write_suite(tmp_path / "s", seeds=(1,), targets=4))
    words = "oldtown: one seed only of SASRec; CaST-POI; w/o spatial bias, so no deviation"
    assert any(gap.startswith(words) for gap in gaps)


def test_rows_with_fewer_seeds_than_others_are_named(tmp_path: Path) -> None:
    root = write_suite(tmp_path / "s", seeds=(1, 2, 3), targets=4)
    shutil.rmtree(root / "oldtown" / "sasrec" / "3")
    words = "oldtown: 2 seeds only of SASRec, where others have 3."
    assert words in gaps_in(root)


def test_names_are_told_apart_and_no_curve_of_a_variant_is_missed(tmp_path: Path) -> None:
    own = ModelConfig.preset("fast").to_dict()
    for name, model in (("full", own), ("less", own | {"dropout": 0.5})):
        result = result_of([1.0], method="castpoi", seed=1, trained={"config": {"model": model}})
        result.save(tmp_path / "t" / name)
    gaps = gaps_in(tmp_path / "t")
    assert "t: no log of the training of CaST-POI, so no curve of it." in gaps
    words = "t: one seed only of CaST-POI; CaST-POI, dropout = 0.5, so no deviation over seeds."
    assert words in gaps


def test_settings_that_were_tried_on_one_city_are_not_missed_on_another(tmp_path: Path) -> None:
    own = ModelConfig.preset("fast").to_dict()
    for city, seed in (("a", 1), ("b", 2)):
        told: dict[str, Any] = {"method": "castpoi", "fingerprint": city * 64}
        full = result_of([1.0], **told, seed=seed, trained={"config": {"model": own}})
        full.save(tmp_path / city / "full")
        for part in ("dropout", "spatial_bias") if city == "a" else ():
            model = own | {part: 0.5 if part == "dropout" else False}
            variant = result_of([2.0], **told, seed=seed, trained={"config": {"model": model}})
            variant.save(tmp_path / city / part)
    assert not any("no result of CaST-POI" in gap for gap in gaps_in(tmp_path))


def test_tuned_baselines_of_one_city_are_not_missed_on_another(tmp_path: Path) -> None:
    for city in ("a", "b"):
        for method in ("castpoi", "sasrec", "esasrec") if city == "a" else ("castpoi", "sasrec"):
            told: dict[str, Any] = {"method": method, "fingerprint": city * 64, "seed": 1}
            result_of([1.0], **told).save(tmp_path / city / method)
    evidence = read_evidence(tmp_path)
    main, tuned = evidence.tables
    assert [city.name for city in shown_in(main, evidence)] == ["a", "b"]
    assert [city.name for city in shown_in(tuned, evidence)] == ["a"]
    assert not any("no result of" in gap for gap in gaps_in(tmp_path))


def test_one_result_without_its_run_lacks_most_things(tmp_path: Path) -> None:
    result_of([1.0, 2.0], method="castpoi").save(tmp_path / "t" / "a")
    gaps = " ".join(gaps_in(tmp_path / "t", has_figures=False))
    for words in (
        "No figures: they need matplotlib (castpoi[report]).",
        "t: no other method, so no improvement and no stars",
        "t: no log of the training of CaST-POI",
        "t: the learned biases are not at hand",
    ):
        assert words in gaps


def test_without_our_method_nothing_is_tested(tmp_path: Path) -> None:
    result_of([1.0, 2.0], method="revisit").save(tmp_path / "t" / "a")
    assert "t: no result of our method, so there is nothing to test." in gaps_in(tmp_path / "t")


def test_a_row_that_one_city_lacks_is_named(tmp_path: Path) -> None:
    root = write_suite(tmp_path / "s", cities=("a", "b"), seeds=(1,), targets=4)
    for path in (root / "b" / "sasrec" / "1").glob("*.*"):
        path.unlink()
    assert "b: no result of SASRec in the table 'Main table'." in gaps_in(root)


def test_a_city_of_known_time_has_nobody_to_be_tested_against(tmp_path: Path) -> None:
    result_of([1.0, 2.0], method="castpoi", known_time=True).save(tmp_path / "t" / "a")
    gaps = gaps_in(tmp_path / "t")
    words = "t (time known): it stands apart, so nothing is tested: its methods were told when"
    assert any(gap.startswith(words) for gap in gaps)
    assert not any("no other method" in gap for gap in gaps)
