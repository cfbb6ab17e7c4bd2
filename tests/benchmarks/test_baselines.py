"""The benchmark of the baselines, with and without the oracle."""

from pathlib import Path

import pytest

from benchmarks import baselines

SEVEN = ["sasrec", "bert4rec", "caser", "narm", "srgnn", "stamp", "core"]


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[str, ...]]:
    """The commands that would run; those of the oracle take ten times as long."""
    run: list[tuple[str, ...]] = []

    def json_of(*command: str) -> dict[str, float]:
        run.append(command)
        seconds = 20.0 if command[0] == "oracle-python" else 2.0
        return {"seconds_per_epoch": seconds, "peak_gb": 0.5}

    monkeypatch.setattr(baselines, "_json_of", json_of)
    monkeypatch.setattr(baselines, "_new_york", lambda folder: folder / "nyc")
    return run


def test_without_an_oracle_ours_is_measured_and_a_message_says_so(
    commands: list[tuple[str, ...]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("CASTPOI_ORACLE_PYTHON", raising=False)
    rows = baselines.baselines_against_oracle(tmp_path, 0)
    assert "the oracle is not measured: CASTPOI_ORACLE_PYTHON is not set" in capsys.readouterr().out
    assert rows == {name: {"our_seconds": 2.0, "our_peak_gb": 0.5} for name in SEVEN}


def test_with_an_oracle_each_row_has_how_many_times_faster_ours_is(
    commands: list[tuple[str, ...]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CASTPOI_ORACLE_PYTHON", "oracle-python")
    rows = baselines.baselines_against_oracle(tmp_path, 0)
    assert list(rows) == SEVEN
    assert {row["times_faster"] for row in rows.values()} == {10.0}
    theirs = [command for command in commands if command[0] == "oracle-python"]
    assert all(Path(tool).is_file() for _, tool, *_ in theirs)
    assert {command[2] for command in theirs} == {"train"}
    assert {city for *_, city, _, _ in theirs} == {str(tmp_path / "nyc")}
