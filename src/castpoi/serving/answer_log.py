"""The log of answers, and their evaluation: places shown, compared with the visits that followed.

One JSON object per line: `{"at", "user", "run", "model", "places"}`. The id of a user is hashed
with a secret of the visit store. Only somebody with the store can join the log with visits, and the
store no longer has the id of an erased user.
"""

import hmac
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import polars as pl
from polars.exceptions import PolarsError

from castpoi.core.errors import BadInput
from castpoi.recommend.recommendation import Recommendations
from castpoi.serving.store import VisitStore

TOP: Final = (1, 5, 10)
"""The k of the hit rates."""

_TEXT: Final = ("user", "run", "model")
_SCHEMA: Final = {
    "at": pl.Int64(),
    **dict.fromkeys(_TEXT, pl.String()),
    "places": pl.List(pl.String),
}
_VISITS: Final = pl.Schema({"user": pl.String, "place": pl.String, "visited_at": pl.Int64})
_CHUNK: Final = 100_000


class AnswerLog:
    """Appends answers to a file that only its owner can read."""

    def __init__(self, file: Path, secret: bytes) -> None:
        self.secret = secret
        try:
            file.touch(mode=0o600)
            self._file = file.open("ab", buffering=0)  # a line is one write: workers share the file
        except OSError as problem:
            raise BadInput(
                f"the log of answers {file} cannot be written: {problem.strerror}; choose another "
                "--answer-log"
            ) from problem

    def add(self, user: str, run: str, answer: Recommendations, at_us: int) -> None:
        """Append the places shown to a user."""
        places = [each.place for each in answer]
        row = {"at": at_us, "user": hashed(user, self.secret), "run": run, "model": answer.model}
        self._file.write(json.dumps({**row, "places": places}).encode() + b"\n")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def hashed(user: str, secret: bytes) -> str:
    """The id of a user in a log."""
    return hmac.digest(secret, user.encode(), "sha256").hex()[:32]


def evaluate_log(file: Path, store: VisitStore) -> list[dict[str, Any]]:
    """Hit rates and MRR of each run, over the answers that were followed by a visit.

    An answer is compared with the next visit of its user. Of several answers before the same visit
    only the last one counts.
    """
    answers = _read(file).sort("at")
    visits = pl.concat([pl.DataFrame(schema=_VISITS), *_visits(store, set(answers["user"]))])
    joined = answers.with_row_index("answer").join_asof(
        visits.sort("visited_at"),
        left_on="at", right_on="visited_at", by="user", strategy="forward",
        allow_exact_matches=False, check_sortedness=False,
    )  # fmt: skip
    rank = pl.col("places").list.eval(pl.element() == pl.element().last()).list.arg_max() + 1
    followed = (
        joined.drop_nulls("place")
        .unique(["user", "visited_at"], keep="last", maintain_order=True)
        .with_columns(is_hit=pl.col("places").list.contains(pl.col("place")))
        .with_columns(places=pl.concat_list("places", "place"))
        .with_columns(rank=pl.when("is_hit").then(rank))
    )
    shown = answers.group_by("run", "model").agg(answers=pl.len())
    metrics = followed.group_by("run", "model").agg(
        followed=pl.len(),
        **{f"HR@{k}": (pl.col("rank") <= k).fill_null(value=False).mean() for k in TOP},
        MRR=(1 / pl.col("rank")).fill_null(0.0).mean(),
    )
    table = shown.join(metrics, on=["run", "model"], how="left").sort("run", "model")
    return table.with_columns(pl.col("followed").fill_null(0)).to_dicts()


def _read(file: Path) -> pl.DataFrame:
    try:
        return pl.read_ndjson(file, schema=_SCHEMA)
    except (PolarsError, OSError) as problem:
        raise BadInput(
            f"{file} is not a log of answers ({str(problem).splitlines()[0]}); give the file of "
            "'castpoi serve --answer-log'"
        ) from problem


def _visits(store: VisitStore, users: set[str]) -> Iterator[pl.DataFrame]:
    """The visits of these hashed users."""
    secret = store.secret()
    known: dict[str, str] = {}
    for rows in store.chunks(most=_CHUNK):
        found = []
        for _, user, place, at_us in rows:
            if user not in known:
                known[user] = hashed(user, secret)
            if known[user] in users:
                found.append((known[user], place, at_us))
        yield pl.DataFrame(found, schema=_VISITS, orient="row")
