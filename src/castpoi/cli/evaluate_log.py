"""`castpoi evaluate-log`: hit rates and MRR of the answers of a service, by run."""

from contextlib import closing
from pathlib import Path

import click

from castpoi.cli.console import Console, output_options
from castpoi.cli.options import FOLDER, store_option
from castpoi.core.errors import extra_for


@click.command("evaluate-log")
@click.argument("log", type=FOLDER)
@store_option(required=True)
@output_options
def evaluate_log(console: Console, log: Path, store: str) -> None:
    """Compare the answers of a LOG with the visits that followed: hit rate and MRR of each run.

    LOG is the file of 'castpoi serve --answer-log', --store the visit store of that service. An
    answer is compared with the next visit of its user; of several answers before one visit only the
    last counts. HR@5: share of visits to one of the first five places shown.
    """
    with extra_for("the visit store", "serve"):
        from castpoi.serving.answer_log import evaluate_log as evaluated
        from castpoi.serving.store import VisitStore
        from castpoi.serving.store_engine import check_exists
    check_exists(store)
    with closing(VisitStore(store)) as opened:
        rows = evaluated(log, opened)
    numbers = [name for name in rows[0] if name not in ("run", "model")] if rows else []
    console.table(
        ["run", "model", *numbers],
        [[row["run"] or "-", row["model"], *(_shown(row[name]) for name in numbers)]
         for row in rows],
        left=2,
    )  # fmt: skip
    console.result({"rows": rows})


def _shown(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{100 * value:.1f} %"
