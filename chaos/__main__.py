"""`make chaos`: break castpoi on purpose, and write the counts to docs/reliability.md.

Each attack runs in its own process with a time limit. The exit code is 1 if anything was lost.
"""

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from castpoi.core.files import write_json, write_text
from castpoi.core.provenance import commit
from chaos.attack import Arena
from chaos.commands import Inputs
from chaos.disk import unmount
from chaos.outcome import Outcome, lost_anything
from chaos.page import PAGE, RECORD, ROOT, block_of, summary_of, table_of, with_block
from chaos.process import environment

LIMITS: Final = {
    "kills": 300,
    "services": 90,
    "databases": 90,
    "full_disk": 90,
    "writers": 60,
    "flips": 60,
    "zoo": 120,
    "fuzz": 60,
}
"""The time limit of each attack in seconds; all together take less than ten minutes."""


def main() -> None:
    """Run all attacks, or those given by --only."""
    options = _options()
    if options.rows is not None:
        run_here(options.only[0], options.folder, options.rows, options.seed)
        return
    with tempfile.TemporaryDirectory(prefix="castpoi-chaos-") as folder:
        record = run_all(options.only or list(LIMITS), Path(folder), options)
    outcomes = [Outcome.from_dict(row) for row in record["rows"]]
    print(table_of(outcomes), summary_of(record), sep="\n", end="")
    if not options.only:  # the page shows complete runs only
        write_json(RECORD, record)
        write_text(PAGE, with_block(PAGE.read_text(encoding="utf-8"), block_of(record)))
    sys.exit(int(lost_anything(outcomes)))


def run_all(names: list[str], folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Run attacks one after the other, and return the record of this run."""
    began, outcomes = time.perf_counter(), []
    Inputs(folder / "inputs").make()
    for name in names:
        print(f"{name} (at most {LIMITS[name] * options.patience:.0f} s)", file=sys.stderr)
        outcomes += run_limited(name, folder, options)
    return {
        "kind": "chaos",
        "commit": commit(),
        "seed": options.seed,
        "seconds": round(time.perf_counter() - began, 1),
        "cpu_seconds": round(_cpu_seconds(), 1),
        "rows": [each.to_dict() for each in outcomes],
    }


def run_limited(name: str, folder: Path, options: argparse.Namespace) -> list[Outcome]:
    """Run one attack in its own process; an attack that exceeds its time limit counts as lost."""
    work, rows = folder / name, folder / f"{name}.jsonl"
    work.mkdir()
    rows.touch()
    words = ["--only", name, "--folder", folder, "--rows", rows, "--seed", options.seed]
    process = subprocess.Popen(
        [sys.executable, "-m", "chaos", *map(str, words)],
        cwd=ROOT,
        env=environment(),
        start_new_session=True,
    )
    try:
        fault = f"exit code {code}" if (code := process.wait(_limit(name, options))) else None
    except subprocess.TimeoutExpired:
        fault = f"not finished within {_limit(name, options):.0f} s"
    finally:
        _end_group(process)
        for disk in (each for each in work.iterdir() if each.is_mount()):
            unmount(disk)
    outcomes = [Outcome.from_dict(json.loads(line)) for line in rows.read_text().splitlines()]
    if fault is not None:
        outcomes.append(Outcome(attack=f"{name}: {fault}", tried=1, lost=1, losses=[fault]))
    for each in outcomes:
        for loss in each.losses:
            print(f"  LOST {each.attack}: {loss}", file=sys.stderr)
    return outcomes


def run_here(name: str, folder: Path, rows: Path, seed: int) -> None:
    """Run one attack in this process, and append each outcome to a file."""
    arena = Arena(folder=folder / name, inputs=Inputs(folder / "inputs"), seed=seed)
    for outcome in import_module(f"chaos.{name}").attack(arena):
        with rows.open("a", encoding="utf-8") as file:
            file.write(json.dumps(outcome.to_dict()) + "\n")


def _limit(name: str, options: argparse.Namespace) -> float:
    return float(LIMITS[name] * options.patience)


def _end_group(process: "subprocess.Popen[bytes]") -> None:
    """Kill the processes that an attack has left running, and wait for them."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m chaos", description=__doc__)
    parser.add_argument("--only", action="append", choices=list(LIMITS), help="run this attack")
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument(
        "--patience", type=float, default=1.0, help="factor for the time limits, on a busy machine"
    )
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--rows", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
