"""The folder of a suite, or of trials: where runs, results and logs are.

DIR/suite.json                         what was asked for and how it stands (see `record.py`)
DIR/CITY/ROW/SEED/                     a result, as `castpoi evaluate` writes it
DIR/CITY/ROW/SEED/experiment.json      its key and how it came about; written last
DIR/CITY/ROW/SEED/run/                 manifest, config and log of its run, without the weights
DIR/runs/CITY/ROW/SEED/                the run, while it is needed
DIR/runs/CITY/ROW/SEED.key.json        the key that the run is made for
DIR/logs/CITY/ROW/SEED.log             what the commands said

A trial has no result: in its place stand only the proof and the papers of its run.
"""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from castpoi.errors import BadInput
from castpoi.experiments.experiment import LOGS, RUNS, CityFolder, Experiment
from castpoi.experiments.key import CODE, Key
from castpoi.files import is_folder_of, read_manifest, read_or_nothing, write_json
from castpoi.run import CONFIG, LOG
from castpoi.training.train import workshop_of

_PROOF: Final = "experiment.json"
_RUN_FILES: Final = ("manifest.json", CONFIG, LOG)


@dataclass(frozen=True)
class SuiteFolder:
    """All paths of a suite."""

    root: Path

    def result(self, experiment: Experiment) -> Path:
        """The result of an experiment."""
        return self.root / experiment.name

    def run(self, experiment: Experiment) -> Path:
        """The run of an experiment."""
        return self.root / RUNS / experiment.name

    def log(self, experiment: Experiment) -> Path:
        """What the commands of an experiment said."""
        return self.root / LOGS / f"{experiment.name}.log"

    def proof(self, experiment: Experiment) -> dict[str, Any]:
        """How a finished experiment came about; empty if it is not finished."""
        if not experiment.is_trial and not is_folder_of(self.result(experiment), "result"):
            return {}
        return read_or_nothing(self.result(experiment) / _PROOF)

    def proofs(self) -> Iterator[dict[str, Any]]:
        """How all finished experiments came about, of this suite or another."""
        for path in sorted(self.root.glob(f"*/*/*/{_PROOF}")):
            proof = read_or_nothing(path)
            if proof.get("kind") == "experiment":
                yield proof

    def check_city(self, city: CityFolder) -> None:
        """Refuse a city whose name another one has here: their results would mix."""
        for path in sorted(self.root.glob(f"{city.name}/*/*/{_PROOF}")):
            former = read_or_nothing(path).get("key", {}).get("fingerprint", city.fingerprint)
            if former != city.fingerprint:
                raise BadInput(
                    f"{path.parent} is of another city named {city.name} (fingerprint "
                    f"{former[:12]}, not {city.fingerprint[:12]}); choose another --out, or "
                    f"remove {self.root / city.name}"
                )

    def begin(self, experiment: Experiment, key: Key, *, any_code: bool) -> dict[str, Any]:
        """Remove what an earlier attempt left for another key; the key of what is then made.

        With `any_code` a run made by another version of the code stays, and so does its key.
        """
        former = read_or_nothing(self._run_key(experiment))
        changes = key.changes_since(former)
        if self._has_begun(experiment) and not (set(changes) - ({CODE} if any_code else set())):
            return former
        self.remove_run(experiment)
        self._run_key(experiment).parent.mkdir(parents=True, exist_ok=True)
        write_json(self._run_key(experiment), key.to_dict())
        return key.to_dict()

    def has_run(self, experiment: Experiment) -> bool:
        """Whether the run of an experiment is whole."""
        return is_folder_of(self.run(experiment), "run")

    def remove_run(self, experiment: Experiment) -> None:
        """Remove the run of an experiment and whatever its training has left."""
        run = self.run(experiment)
        for folder, kind in ((run, "run"), (workshop_of(run), "training")):
            if is_folder_of(folder, kind):
                shutil.rmtree(folder)
        self._run_key(experiment).unlink(missing_ok=True)

    def made(self, experiment: Experiment) -> dict[str, Any]:
        """The manifest of what the commands of an experiment have made: a result, or a run."""
        if experiment.is_trial:
            return read_manifest(self.run(experiment), kind="run")
        return read_manifest(self.result(experiment), kind="result")

    def close(self, experiment: Experiment, proof: dict[str, Any]) -> None:
        """Put the papers of the run beside its result, and last of all the proof."""
        if experiment.needs_training:
            self.papers(experiment).mkdir(parents=True, exist_ok=True)
            for name in _RUN_FILES:
                shutil.copyfile(self.run(experiment) / name, self.papers(experiment) / name)
        write_json(self.result(experiment) / _PROOF, proof)

    def papers(self, experiment: Experiment) -> Path:
        """Manifest, config and log of the run of a finished experiment."""
        return self.result(experiment) / "run"

    def _has_begun(self, experiment: Experiment) -> bool:
        return self.has_run(experiment) or workshop_of(self.run(experiment)).is_dir()

    def _run_key(self, experiment: Experiment) -> Path:
        run = self.run(experiment)
        return run.with_name(f"{run.name}.key.json")
