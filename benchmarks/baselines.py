"""Training speed of the seven baselines, next to the official RecBole models in the same run.

Both train for a part of an epoch with preset paper, each in its own process, on all cores that
torch uses. The oracle (RecBole) runs with the Python of CASTPOI_ORACLE_PYTHON (tools/README.md);
without that variable only our models are measured.

`python -m benchmarks.baselines NAME CITY SHARE` measures one of ours and prints one JSON object.
"""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from torch import Tensor, nn

from benchmarks.learning import city_of_new_yorks_size
from castpoi.baselines.sequence import model_class, new_model
from castpoi.checkins.city import City
from castpoi.checkins.cleaning import NYC
from castpoi.checkins.prepare import Preparation, prepare
from castpoi.training.config import SequenceTraining
from castpoi.training.loop import TrainingContext, TrainingLoop
from castpoi.training.objectives import Objective
from castpoi.training.sequence import objective_of

OFFICIAL: Final = {
    "sasrec": "SASRec",
    "bert4rec": "BERT4Rec",
    "caser": "Caser",
    "narm": "NARM",
    "srgnn": "SRGNN",
    "stamp": "STAMP",
    "core": "CORE",
}
"""RecBole's name of each baseline."""

SHARE: Final = 0.1
"""Part of an epoch that is measured: the oracle needs up to twenty minutes per epoch."""

_ROOT: Final = Path(__file__).resolve().parents[1]
_NEW_YORK: Final = _ROOT.parent / "shared" / "data" / "nyc.csv.gz"


def baselines_against_oracle(folder: Path, checkins: int) -> dict[str, Any]:
    """Seconds per epoch of each baseline on NYC, next to those of the official RecBole model."""
    oracle = os.environ.get("CASTPOI_ORACLE_PYTHON")
    if oracle is None:
        print("  the oracle is not measured: CASTPOI_ORACLE_PYTHON is not set")
    city = _new_york(folder)
    return {name: against_oracle(name, city, oracle=oracle, share=SHARE) for name in OFFICIAL}


def against_oracle(name: str, city: Path, *, oracle: str | None, share: float) -> dict[str, float]:
    """Time and memory of one baseline and of the oracle, and how many times faster ours is."""
    ours = _json_of(sys.executable, "-m", "benchmarks.baselines", name, str(city), str(share))
    row = {"our_seconds": ours["seconds_per_epoch"], "our_peak_gb": ours["peak_gb"]}
    if oracle is None:
        return row
    tool = str(_ROOT / "tools" / "recbole_oracle.py")
    words = ("train", OFFICIAL[name], str(city), "--time-epochs", str(share))
    theirs = _json_of(oracle, tool, *words)
    return {
        **row,
        "oracle_seconds": theirs["seconds_per_epoch"],
        "oracle_peak_gb": theirs["peak_gb"],
        "times_faster": theirs["seconds_per_epoch"] / ours["seconds_per_epoch"],
    }


def _json_of(*command: str) -> dict[str, float]:
    """The JSON object on the last line of a command's output."""
    ended = subprocess.run(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if ended.returncode:
        raise SystemExit(f"{' '.join(command)} ended with exit code {ended.returncode}")
    printed: dict[str, float] = json.loads(ended.stdout.splitlines()[-1])
    return printed


def _new_york(folder: Path) -> Path:
    """The folder of prepared New York; without its data, of a synthetic city of that size."""
    if not _NEW_YORK.is_file():
        city_of_new_yorks_size(folder)
        return folder / "nyc-size"
    prepare([_NEW_YORK], folder / "nyc", Preparation(recipe=NYC))
    return folder / "nyc"


class PartOfAnEpoch:
    """An objective that trains only on the first batches of each epoch."""

    def __init__(self, whole: Objective[Any], *, share: float) -> None:
        self.whole = whole
        self.share_of_batches = share

    def batches(self, epoch: int) -> Sequence[Any]:
        """The first batches of the epoch, at least one."""
        every = self.whole.batches(epoch)
        return every[: max(1, round(self.share_of_batches * len(every)))]

    def loss(self, model: nn.Module, batch: Any) -> Tensor:
        """Delegate to the whole objective."""
        return self.whole.loss(model, batch)

    def targets(self, batch: Any) -> int:
        """Delegate to the whole objective."""
        return self.whole.targets(batch)

    def share(self, batch: Any, rank: int, ranks: int) -> Any:
        """Delegate to the whole objective."""
        return self.whole.share(batch, rank, ranks)


def seconds_per_epoch(name: str, city: City, *, share: float) -> float:
    """Our seconds per epoch, measured on a part of the second of two epochs, without validation."""
    kind, plan = model_class(name), SequenceTraining.preset("paper")
    shape = kind.config_class.preset("paper")
    whole = objective_of(kind, city, shape, plan, seed=7)
    loop = TrainingLoop(
        new_model(name, config=shape, places=city.places.height, seed=7),
        PartOfAnEpoch(whole, share=share),
        lambda model: {},
        config=replace(plan, epochs=2),
        seed=7,
        context=TrainingContext(),
    )
    loop.run()
    targets = sum(whole.targets(batch) for batch in whole.batches(1))
    return targets / loop.records[-1].targets_per_second


def main() -> None:
    """Measure one of our baselines."""
    name, folder, share = sys.argv[1:]
    seconds = seconds_per_epoch(name, City.load(Path(folder), verify=False), share=float(share))
    peak_gb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(json.dumps({"seconds_per_epoch": seconds, "peak_gb": peak_gb}))


if __name__ == "__main__":
    main()
