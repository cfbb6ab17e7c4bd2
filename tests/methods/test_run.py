import json
import shutil
from pathlib import Path

import pytest
from safetensors.numpy import save

from castpoi.core.errors import BadInput, BrokenFolder, UnknownMethod
from castpoi.core.files import read_json, write_json
from castpoi.methods.run import city_of, load_run
from castpoi.training.train import train
from tests import trapped_files
from tests.cities import small_city
from tests.contract import odd_city
from tests.manifests import accept_changes
from tests.messages import refused


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    odd_city().save(tmp_path / "city")
    train(tmp_path / "city", tmp_path / "run", method="markov", seed=5)
    return tmp_path / "run"


def test_the_manifest_of_a_run_has_its_method_and_origin(run_folder: Path) -> None:
    assert sorted(file.name for file in run_folder.iterdir()) == [
        "config.json",
        "log.jsonl",
        "manifest.json",
        "model.safetensors",
        "places.parquet",
    ]
    run = load_run(run_folder)
    assert (run.method, run.seed) == ("markov", 5)
    assert run.city == (run_folder.parent / "city").resolve()
    assert run.fingerprint == odd_city().fingerprint
    assert run.manifest["knows"] == ["train", "validation"]
    assert {"versions", "commit", "started_utc", "ended_utc", "wall_seconds"} <= run.manifest.keys()
    assert read_json(run_folder / "config.json") == {"back_off": 0.4}


def test_the_log_has_one_event_per_line_and_the_first_has_method_and_seed(run_folder: Path) -> None:
    lines = (run_folder / "log.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    assert [event["event"] for event in events] == ["run started", "city counted", "run finished"]
    assert (events[0]["method"], events[0]["seed"]) == ("markov", 5)


def test_a_run_may_not_predict_a_split_that_it_has_seen(run_folder: Path) -> None:
    run = load_run(run_folder)
    run.check_may_predict("test")
    with refused(BadInput):
        run.check_may_predict("validation")


def test_a_changed_model_is_noticed(run_folder: Path) -> None:
    model = run_folder / "model.safetensors"
    content = bytearray(model.read_bytes())
    content[-1] ^= 1
    model.write_bytes(content)
    with refused(BrokenFolder):
        load_run(run_folder)


def test_changed_settings_are_noticed(run_folder: Path) -> None:
    write_json(run_folder / "config.json", {"back_off": 0.5})
    with refused(BrokenFolder):
        load_run(run_folder)


def test_a_missing_model_is_noticed(run_folder: Path) -> None:
    (run_folder / "model.safetensors").unlink()
    with refused(BrokenFolder):
        load_run(run_folder)


@pytest.mark.parametrize("kind", trapped_files.KINDS)
def test_a_model_that_would_run_code_is_not_opened(
    run_folder: Path, tmp_path: Path, kind: str
) -> None:
    replace_model(run_folder, trapped_files.content(kind, tmp_path / "trap"))
    with refused(BrokenFolder):
        load_run(run_folder)
    assert not (tmp_path / "trap").exists()


def test_a_model_that_lacks_an_array_is_noticed(run_folder: Path) -> None:
    replace_model(run_folder, save({}))
    with refused(BrokenFolder):
        load_run(run_folder)


def test_an_incomplete_manifest_is_refused(run_folder: Path) -> None:
    write_json(run_folder / "manifest.json", {"kind": "run", "method": "markov"})
    with refused(BrokenFolder):
        load_run(run_folder)


def test_a_changed_manifest_is_refused(run_folder: Path) -> None:
    manifest = read_json(run_folder / "manifest.json")
    changed_checksum = {**manifest["sha256"], "log.jsonl": "0" * 64}
    for changes in ({"seed": 6}, {"sha256": changed_checksum}):
        write_json(run_folder / "manifest.json", {**manifest, **changes})
        with refused(BrokenFolder):
            load_run(run_folder)


def test_a_run_of_a_method_that_is_gone_is_refused(run_folder: Path) -> None:
    for method in ("oracle", 7):
        accept_changes(run_folder, method=method)
        with refused(UnknownMethod):
            load_run(run_folder)


def test_a_run_contains_its_places_and_their_check_ins(run_folder: Path) -> None:
    shutil.rmtree(run_folder.parent / "city")
    places = load_run(run_folder).places
    assert places.drop("checkins").equals(odd_city().places)
    # train and validation of the small city, counted by hand
    assert places["checkins"].to_list() == [4, 3, 2, 1, 0]


def test_another_city_is_refused(run_folder: Path, tmp_path: Path) -> None:
    small_city([(0, 0, "2012-04-02 12:00")], ["test"]).save(tmp_path / "other")
    with refused(BrokenFolder):
        city_of(load_run(run_folder), tmp_path / "other")


def test_changed_places_are_noticed(run_folder: Path) -> None:
    with (run_folder / "places.parquet").open("ab") as places:
        places.write(b"!")
    with refused(BrokenFolder):
        load_run(run_folder)


def test_missing_places_are_noticed(run_folder: Path) -> None:
    (run_folder / "places.parquet").unlink()
    with refused(BrokenFolder):
        load_run(run_folder)


def test_places_that_are_no_table_are_noticed(run_folder: Path) -> None:
    (run_folder / "places.parquet").write_bytes(b"no table")
    accept_changes(run_folder)
    with refused(BrokenFolder):
        load_run(run_folder)


def replace_model(folder: Path, content: bytes) -> None:
    (folder / "model.safetensors").write_bytes(content)
    accept_changes(folder)
