"""The examples of docs/library.md and docs/own-model.md run as they are written."""

import re
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import castpoi

DOCS = Path(__file__).parents[2] / "docs"
TINY = {"epochs": 1, "width": 8, "threads": 1}


@pytest.mark.parametrize("page", ["library.md", "own-model.md"])
@pytest.mark.filterwarnings("ignore:OpenBLAS is configured:RuntimeWarning")
def test_the_examples_of_a_page_run(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(castpoi, "train", partial(castpoi.train, settings=TINY), raising=False)
    visits = castpoi.synthesize(users=20, places=60, days=30, seed=1)
    visits = visits.with_columns(user=pl.col("user").rank("dense") + 469)
    visits.write_csv("visits.csv")
    city = castpoi.prepare(visits)
    model = castpoi.train(city)
    top = model.recommend_all(k=20).select("user", "place", "rank")
    for name in ("top20.csv", "recbole_top100.csv"):
        top.write_csv(name)
    names = {
        "castpoi": castpoi, "np": np, "Path": Path, "city": city, "model": model,
        "frame": visits.filter(user=470).select("place", "time"),
    }  # fmt: skip
    for code in re.findall(r"```python\n(.*?)```", (DOCS / page).read_text("utf-8"), re.S):
        changed = code.replace('time="ts", place="venue"', "").replace('("cafe"', '("place-01"')
        exec(compile(changed, page, "exec"), names)  # our own page


def test_every_public_name_is_on_the_page_of_the_library() -> None:
    pages = [(DOCS / page).read_text("utf-8") for page in ("library.md", "own-model.md")]
    for name in castpoi.__all__:
        assert name == "__version__" or f"castpoi.{name}" in "".join(pages), name
