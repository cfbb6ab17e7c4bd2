"""Seeds on the command line: what no generator takes is refused before any work."""

from pathlib import Path

import pytest

from tests.conftest import CommandLine


@pytest.mark.parametrize("seed", [-1, 2**32, 10**26])
@pytest.mark.parametrize(
    "words",
    [
        ["train", "CITY", "--seed"],
        ["tune", "CITY", "--model", "sasrec", "--try", "dropout=0.2", "--seed"],
        ["reproduce", "CITY", "--suite", "main", "--seeds"],
        ["demo", "--seed"],
    ],
    ids=lambda words: words[0],
)
def test_a_seed_that_no_generator_takes_is_refused(
    castpoi: CommandLine, tmp_path: Path, words: list[str], seed: int
) -> None:
    ended = castpoi(words[0], "--out", tmp_path / "out", *words[1:], seed)
    assert ended.code == 2
    assert f"{seed} is not in the range 0<=x<=4294967295" in ended.err
    assert not (tmp_path / "out").exists()
