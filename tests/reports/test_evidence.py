"""Evidence: all results below a folder, by city and row, with the logs of their trainings."""

import json
from pathlib import Path

import pytest

from castpoi.core.errors import BadInput, BrokenFolder
from castpoi.core.files import read_json
from castpoi.reports.evidence import OUTDATED, Evidence, read_evidence, read_result
from tests.manifests import accept_changes
from tests.messages import refused
from tests.reports.result_folders import result_of, write_suite


def test_a_suite_is_read_by_city_row_and_seed(tmp_path: Path) -> None:
    evidence = read_evidence(write_suite(tmp_path / "s", cities=("b", "a"), targets=6))
    assert [city.name for city in evidence.cities] == ["b", "a"]
    assert [row.name for row in evidence.rows] == [
        "sasrec",
        "revisit",
        "castpoi",
        "no-spatial-bias",
    ]
    city = evidence.cities[0]
    assert [each.seed for each in city.of("sasrec")] == [1, 2]
    assert [each.folder.name for each in city.of("revisit")] == ["0"]
    assert len(evidence.results) == 14


def test_our_method_keeps_its_own_name_although_the_ablation_comes_first(tmp_path: Path) -> None:
    evidence = read_evidence(write_suite(tmp_path / "s", targets=4))
    assert [table.name for table in evidence.tables] == ["main", "ablation"]
    ours = evidence.ours(evidence.cities[0])
    assert ours is not None
    assert ours.label == "CaST-POI"
    assert evidence.cities[0].of("castpoi")[0].row.label == "CaST-POI"


def test_a_report_may_be_about_a_baseline_or_a_heuristic(tmp_path: Path) -> None:
    folder = write_suite(tmp_path / "s", targets=4)
    evidence = read_evidence(folder, ours=["sasrec"])
    roles = {row.name: row.role for row in evidence.rows}
    assert roles["sasrec"] == "ours"
    assert roles["castpoi"] == "baseline"
    assert roles["revisit"] == "heuristic"
    assert {family.row for table in evidence.tables for family in table.families} == {"sasrec"}
    (main,) = (table for table in read_evidence(folder, ours=["revisit"]).tables
               if table.name == "main")  # fmt: skip
    assert [family.row for family in main.families] == ["revisit"]
    with pytest.raises(BadInput, match="no result of 'sasrek'; did you mean 'sasrec'"):
        read_evidence(folder, ours=["sasrek"])


def test_without_its_suite_our_method_is_not_labelled_full_model(tmp_path: Path) -> None:
    folder = write_suite(tmp_path / "s", targets=4)
    for result in folder.glob("*/castpoi/*"):
        made = read_json(result / "manifest.json")["experiment"]
        accept_changes(result, experiment=made | {"row": made["row"] | {"label": "Full model"}})
    (folder / "suite.json").unlink()
    labels = {row.name: row.label for row in read_evidence(folder).rows}
    assert (labels["castpoi"], labels["sasrec"]) == ("CaST-POI", "SASRec")


def test_the_log_of_a_training_is_read_from_the_result(tmp_path: Path) -> None:
    (city,) = read_evidence(write_suite(tmp_path / "s", targets=4)).cities
    ours = city.of("castpoi")[0]
    assert ours.training_seconds == 90.0
    assert [epoch["epoch"] for epoch in ours.epochs] == [1, 2, 3]
    assert ours.parameters == 1234
    assert ours.commands == ["castpoi train oldtown --model castpoi --seed 1"]
    assert city.of("revisit")[0].training_seconds is None


def test_steps_of_a_training_without_a_loss_are_no_epochs(tmp_path: Path) -> None:
    folder = write_suite(tmp_path / "s", targets=4)
    for log in folder.glob("*/castpoi/*/run/log.jsonl"):
        log.write_text('{"event": "epoch finished", "epoch": 1, "metrics": {"MRR": 0.2}}\n')
    (city,) = read_evidence(folder).cities
    assert city.of("castpoi")[0].epochs == []


def test_a_result_of_a_row_that_was_changed_since_is_left_out(tmp_path: Path) -> None:
    root = write_suite(tmp_path / "s", targets=4)
    suite = json.loads((root / "suite.json").read_text())
    for row in suite["tables"]["main"]["rows"]:
        if row["name"] == "revisit":
            row["method"] = "markov"
    (root / "suite.json").write_text(json.dumps(suite))
    evidence = read_evidence(root)
    assert "revisit" not in evidence.cities[0].contenders
    assert evidence.unfinished == {"oldtown/revisit/0": OUTDATED}


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("HR@5", "HR@7", "no metric is named HR@7"),
        ("heuristic", "jester", "role='jester' is not valid; it must be 'ours' or 'baseline' or"),
    ],
)
def test_an_unknown_role_or_metric_of_a_suite_is_refused(
    tmp_path: Path, old: str, new: str, fault: str
) -> None:
    path = write_suite(tmp_path / "s", targets=4) / "suite.json"
    path.write_text(path.read_text().replace(f'"{old}"', f'"{new}"'))
    with pytest.raises(BrokenFolder, match=fault):
        read_evidence(path.parent)


def test_results_that_rank_the_same_weights_share_a_training(tmp_path: Path) -> None:
    for name, started in (("a", "noon"), ("b", "noon"), ("c", "night")):
        trained = {"started_utc": started, "wall_seconds": 9.0}
        result_of([1], method="stamp", seed=ord(name), trained=trained).save(tmp_path / "t" / name)
    for each in (tmp_path / "t").rglob("manifest.json"):
        accept_changes(each.parent, seed=7)
    found = [read_result(tmp_path / "t" / name, {}) for name in "abc"]
    assert found[0].training == found[1].training != found[2].training


def test_other_splits_and_parts_are_cities_of_their_own(tmp_path: Path) -> None:
    town = tmp_path / "town"
    result_of([1], method="revisit").save(town / "a")
    result_of([1], method="revisit", part="validation").save(town / "b")
    result_of([1], method="revisit", fingerprint="e" * 64).save(town / "c")
    names = [city.name for city in read_evidence(town).cities]
    assert names == ["town", "town (validation)", "town eeeeeeee"]


def test_results_in_no_table_of_the_suite_get_a_table(tmp_path: Path) -> None:
    root = write_suite(tmp_path / "s", targets=4)
    result_of([1, 2, 3, 4], method="markov", fingerprint="0" * 64).save(root / "extra" / "markov")
    evidence = read_evidence(root)
    (other,) = [table for table in evidence.tables if table.name == "other-main"]
    assert other.title == "Main table, others"
    assert "markov" in evidence.cities[0].contenders


def test_a_result_whose_manifest_is_damaged_is_an_error(tmp_path: Path) -> None:
    for method in ("castpoi", "revisit"):
        result_of([1.0, 2.0], method=method).save(tmp_path / "t" / method)
    manifest = tmp_path / "t" / "castpoi" / "manifest.json"
    manifest.write_text(manifest.read_text()[:40])
    with refused(BrokenFolder):
        read_evidence(tmp_path / "t")


def test_a_folder_without_results_is_refused(tmp_path: Path) -> None:
    with refused(BadInput):
        read_evidence(tmp_path)


def test_a_damaged_log_is_an_error(tmp_path: Path) -> None:
    root = write_suite(tmp_path / "s", targets=4)
    (root / "oldtown" / "castpoi" / "1" / "run" / "log.jsonl").write_text('{"event": ')
    (city,) = read_evidence(root).cities
    with refused(BrokenFolder):
        _ = city.of("castpoi")[0].epochs


def test_results_of_known_time_are_a_city_and_a_row_of_their_own(tmp_path: Path) -> None:
    for number, known_time in enumerate((False, True)):
        for part in ("test", "validation"):
            name = f"{part}-{number}"
            found = result_of([1, 2], method="castpoi-next", part=part, known_time=known_time)
            found.save(tmp_path / ("known" if known_time else "a-town") / name)
    evidence = read_evidence(tmp_path)
    names = ["a-town", "a-town (validation)", "a-town (time known)"]
    assert [city.name for city in evidence.cities] == [*names, "a-town (validation, time known)"]
    assert [city.known_time for city in evidence.cities] == [False, False, True, True]
    assert [list(city.contenders) for city in evidence.cities] == [
        ["castpoi-next"],
        ["castpoi-next"],
        ["castpoi-next-known_time=true"],
        ["castpoi-next-known_time=true"],
    ]


def test_a_result_of_known_time_in_the_folder_of_another_row_is_no_seed_of_it(
    tmp_path: Path,
) -> None:
    root = write_suite(tmp_path / "s", targets=2)
    result_of([1, 2], method="castpoi", seed=9, fingerprint="0" * 64, known_time=True).save(
        root / "oldtown" / "castpoi" / "9"
    )
    evidence = read_evidence(root)
    town, apart = evidence.cities
    assert (town.name, apart.name) == ("oldtown", "oldtown (time known)")
    assert [each.seed for each in town.of("castpoi")] == [1, 2]
    assert list(apart.contenders) == ["castpoi-known_time=true"]


def test_an_oracle_is_neither_the_strongest_baseline_nor_a_method_of_a_city(tmp_path: Path) -> None:
    town = tmp_path / "town"
    for method, rank in (("castpoi", 2.0), ("stamp", 3.0), ("revisit", 9.0)):
        result_of([rank] * 4, method=method).save(town / method)
    oracle = result_of([1.0] * 4, method="recbole-stamp", seed=1, oracle="recbole 1.2.1")
    oracle.save(town / "recbole-stamp")
    evidence = read_evidence(town)
    (city,) = evidence.cities
    strongest = evidence.strongest(city, "MRR")
    assert strongest is not None
    assert strongest.name == "stamp"
    assert [row.name for row in evidence.rows_of(city)] == ["revisit", "stamp", "castpoi"]
    assert [table.name for table in evidence.tables] == ["main", "oracles"]


def test_the_preset_of_a_row_is_that_of_its_runs(committed: Evidence) -> None:
    presets = {row.name: row.preset for row in committed.rows}
    assert (presets["castpoi"], presets["castpoi-next"]) == ("fast", "next")
    assert (presets["no-spatial-bias"], presets["sasrec"]) == ("fast", "paper")
    assert presets["revisit"] is None


def test_a_suite_below_the_folder_is_left_out(tmp_path: Path) -> None:
    result_of([1.0] * 4, method="revisit").save(tmp_path / "town" / "revisit")
    write_suite(tmp_path / "suite")
    assert [each.folder.name for each in read_evidence(tmp_path).results] == ["revisit"]
    assert len(read_evidence(tmp_path / "suite").results) > 1
