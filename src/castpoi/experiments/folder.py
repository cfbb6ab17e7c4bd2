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
from typing import Any

from castpoi.core.errors import BadInput
from castpoi.core.files import is_folder_of, read_manifest, read_or_nothing, write_json
from castpoi.core.staging import sweep
from castpoi.experiments.experiment import LOGS, RUNS, CityFolder, Experiment
from castpoi.experiments.key import CODE, Key
from castpoi.experiments.wholeness import (
    PAPERS,
    PROOF,
    RUN_FILES,
    is_remainder,
    is_whole_result,
    is_whole_run,
    is_whole_trial,
    make_room,
    read_proof,
)
from castpoi.training.train import checkpoint_dir_of


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
        return read_proof(self.result(experiment) / PROOF)

    def is_whole(self, experiment: Experiment) -> bool:
        """Whether what a finished experiment has made can be read, and is what it should be."""
        if experiment.is_trial:
            return is_whole_trial(self.papers(experiment), experiment)
        return is_whole_result(self.result(experiment), experiment)

    def proofs(self) -> Iterator[dict[str, Any]]:
        """How all finished experiments came about, of this suite or another."""
        yield from (proof for _, proof in self._found_proofs())

    def check_city(self, city: CityFolder) -> None:
        """Refuse a city whose name another one has here: their results would mix."""
        for place, proof in self._found_proofs():
            name, former = self._city_of(place), str(proof["key"]["fingerprint"])
            if name == city.name and former != city.fingerprint:
                raise BadInput(
                    f"{place} is of another city named {name} (fingerprint {former[:12]}, not "
                    f"{city.fingerprint[:12]}); choose another --out, or remove {self.root / name}"
                )

    def check_name(self, city: CityFolder) -> None:
        """Refuse a city that has another name here: every seed of a row would stand here twice."""
        for place, proof in self._found_proofs():
            name, former = self._city_of(place), str(proof["key"]["fingerprint"])
            if name != city.name and former == city.fingerprint:
                raise BadInput(
                    f"{city.folder} is the city that is named {name} in {self.root} (fingerprint "
                    f"{former[:12]}); rename its folder to {name}, or choose another --out"
                )

    def begin(self, experiment: Experiment, key: Key, *, any_code: bool) -> dict[str, Any]:
        """Remove what an earlier attempt left torn or for another key; the key of what is made.

        With `any_code` a run made by another version of the code stays, and so does its key.
        """
        if not experiment.is_trial:
            make_room(self.result(experiment))
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
        return is_whole_run(self.run(experiment))

    def remove_run(self, experiment: Experiment) -> None:
        """Remove the run of an experiment and whatever its training has left."""
        run = self.run(experiment)
        for folder, kind in ((run, "run"), (checkpoint_dir_of(run), "training")):
            if is_folder_of(folder, kind) or is_remainder(folder):
                shutil.rmtree(folder)
        sweep(run)
        self._run_key(experiment).unlink(missing_ok=True)

    def remove_finished_run(self, experiment: Experiment) -> None:
        """Remove the run of a finished experiment if a killed command should have removed it."""
        if not self.proof(experiment).get("keeps_run", True):
            self.remove_run(experiment)

    def made(self, experiment: Experiment) -> dict[str, Any]:
        """The manifest of what the commands of an experiment have made: a result, or a run."""
        if experiment.is_trial:
            return read_manifest(self.run(experiment), kind="run")
        return read_manifest(self.result(experiment), kind="result")

    def close(self, experiment: Experiment, proof: dict[str, Any]) -> None:
        """Put the papers of the run beside its result, and last of all the proof."""
        if experiment.needs_training:
            self.papers(experiment).mkdir(parents=True, exist_ok=True)
            for name in RUN_FILES:
                shutil.copyfile(self.run(experiment) / name, self.papers(experiment) / name)
        write_json(self.result(experiment) / PROOF, proof)

    def papers(self, experiment: Experiment) -> Path:
        """Manifest, config and log of the run of a finished experiment."""
        return self.result(experiment) / PAPERS

    def _found_proofs(self) -> Iterator[tuple[Path, dict[str, Any]]]:
        """All proofs that can be read, and the places of their results."""
        for path in sorted(self.root.glob(f"*/*/*/{PROOF}")):
            proof = read_proof(path)
            if proof:
                yield path.parent, proof

    def _city_of(self, place: Path) -> str:
        return place.relative_to(self.root).parts[0]

    def _has_begun(self, experiment: Experiment) -> bool:
        run = self.run(experiment)
        is_training = is_folder_of(checkpoint_dir_of(run), "training") and not run.exists()
        return self.has_run(experiment) or is_training

    def _run_key(self, experiment: Experiment) -> Path:
        run = self.run(experiment)
        return run.with_name(f"{run.name}.key.json")
