"""`python -m castpoi.experiments.worker SPEC.json`: one experiment in a process of its own.

A crash, or a process that the system kills because memory ran out, ends one experiment and not the
suite. The worker trains and evaluates, and writes a record or an error to the path in the spec. It
ends with the process that started it: that process holds the other end of standard input, so the
pipe closes when it ends, even by a kill.
"""

import os
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from castpoi.checkins import record as columns
from castpoi.checkins.city import City
from castpoi.core.config import read_dataclass
from castpoi.core.errors import BrokenFolder, CastPoiError
from castpoi.core.files import check_files, check_vacant, read_json, read_manifest, write_json
from castpoi.evaluation.result import EXPERIMENT, copy_records
from castpoi.experiments.evaluate import evaluate_counted, evaluate_run
from castpoi.experiments.folder import clear
from castpoi.methods.outline import Row
from castpoi.methods.run import LOG, Run, load_run
from castpoi.training.job import TrainingOptions
from castpoi.training.train import train

OF_TRAINING: Final = ("validation", "best_epoch", "epochs")
"""Entries of a run's config about its training."""


def main(spec_path: Path) -> None:
    """Run the experiment of a spec; write its record, or the error."""
    threading.Thread(target=end_with_starter, daemon=True).start()
    spec = read_json(spec_path)
    try:
        outcome = make(spec)
    except CastPoiError as problem:
        outcome = {"error": str(problem)}
    except Exception as problem:  # the log has the traceback
        traceback.print_exc()
        outcome = {"error": f"{type(problem).__name__}: {problem}"}
    write_json(Path(spec["outcome"]), outcome)


def end_with_starter() -> None:
    """Wait until the other end of standard input closes, then end this process."""
    while os.read(0, 1):
        pass
    os._exit(1)  # as a kill would: folders appear whole or not at all


def make(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Train and evaluate an experiment, or only train a trial; returns its record."""
    city, run_folder, out = (Path(spec[name]) for name in ("city", "run", "result"))
    record, part = dict(spec["record"]), spec["part"]
    row = read_dataclass(Row, record["row"])
    if part == columns.TEST:
        clear(out, "result", only_damaged=True)
        check_vacant(out, kind="result", overwrite=True)
    _check_city(spec, read_manifest(city, kind="city"))
    seconds_before, run = 0.0, None
    if row.is_learned:
        seconds_before, run = _trained(row, spec)
        _check_city(spec, run.manifest)
    if part == columns.TEST:
        command = {"command": record["commands"][-1]}
        if run is None:
            result = evaluate_counted(row.method, City.load(city), part=part, **command)
        else:
            result = evaluate_run(run, City.load(city), part=part, **command)
        _check_city(spec, result.manifest)
        record["seconds"] = round(seconds_before + time.time() - spec["started"], 3)
        result = replace(result, manifest={**result.manifest, EXPERIMENT: record})
        result.save(out, overwrite=True, run=run_folder if run else None)
    elif run is not None:
        training = run.ranker.config["training"]
        record |= {name: training[name] for name in OF_TRAINING}
        record["commit"] = run.manifest["commit"]
        record["seconds"] = round(seconds_before + time.time() - spec["started"], 3)
        copy_records(run_folder, out)
    return record


def _trained(row: Row, spec: Mapping[str, Any]) -> tuple[float, Run]:
    """The run of an experiment, trained unless it is complete; and the seconds spent before."""
    folder = Path(spec["run"])
    try:
        run = load_run(folder)
        check_files(folder, run.manifest, (LOG,))
    except CastPoiError:
        clear(folder, "run")
    else:
        return float(run.manifest["wall_seconds"]), run
    began = time.time()
    run = train(
        Path(spec["city"]),
        folder,
        method=row.method,
        seed=spec["record"]["seed"],
        part=spec["part"],
        options=TrainingOptions(
            preset=row.preset, settings=row.settings, warn=partial(print, file=sys.stderr)
        ),
    )
    return float(run.manifest["wall_seconds"]) - (time.time() - began), run


def _check_city(spec: Mapping[str, Any], manifest: Mapping[str, Any]) -> None:
    if manifest.get("fingerprint") != spec["record"]["key"]["fingerprint"]:
        raise BrokenFolder(
            f"{spec['city']} was prepared again during the experiment; give the same command again"
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
