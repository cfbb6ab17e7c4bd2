"""`castpoi evaluate-log`: how good the answers of a service were, by run."""

from contextlib import closing
from pathlib import Path

import click

from castpoi.cli.console import Console, output_options
from castpoi.cli.options import FOLDER, store_option
from castpoi.core.errors import BadInput


@click.command("evaluate-log")
@click.argument("log", type=FOLDER)
@store_option
@output_options
def evaluate_log(console: Console, log: Path, store: str | None) -> None:
    """Compare the answers of a LOG with the visits that followed: hit rate and MRR of each run.

    LOG is the file of 'castpoi serve --answer-log', the store that of the same service. An answer
    is compared with the first visit of its user after it; of several answers before the same visit
    only the last one counts. HR@5 is the share of visits to one of the first five places shown.
    """
    try:
        from castpoi.serving.answer_log import evaluate_log as evaluated
        from castpoi.serving.store import VisitStore
        from castpoi.serving.store_engine import check_exists
    except ModuleNotFoundError as problem:
        raise BadInput(
            f"the visit store needs {problem.name}, which is not installed; "
            "pip install 'castpoi[serve]'"
        ) from problem
    if store is None:
        raise click.UsageError("Give --store: that of the service.")
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
