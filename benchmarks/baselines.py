"""How fast the seven baselines learn, against the official RecBole models in the same run.

Both sides learn a part of an epoch with preset paper, each in a process of its own, on all cores
that torch sees. The oracle runs in the environment that CASTPOI_ORACLE_PYTHON names (see
tools/README.md); where it names none, only ours is measured.

`python -m benchmarks.baselines NAME CITY SHARE` measures ours alone and prints one JSON object.
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
from castpoi.training.objective import Objective
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
"""Part of an epoch that is measured: the oracle needs up to twenty minutes for a whole one."""

_ROOT: Final = Path(__file__).resolve().parents[1]
_NEW_YORK: Final = _ROOT.parent / "shared" / "data" / "nyc.csv.gz"


def baselines_against_oracle(folder: Path, checkins: int) -> dict[str, Any]:
    """Seconds an epoch of each baseline on NYC, ours against the official RecBole model's."""
    oracle = os.environ.get("CASTPOI_ORACLE_PYTHON")
    if oracle is None:
        print("  the oracle is not measured: CASTPOI_ORACLE_PYTHON names no environment for it")
    city = _new_york(folder)
    return {name: against_oracle(name, city, oracle=oracle, share=SHARE) for name in OFFICIAL}


def against_oracle(name: str, city: Path, *, oracle: str | None, share: float) -> dict[str, float]:
    """What an epoch of one baseline takes, and how many times longer the oracle's."""
    ours = _told_by(sys.executable, "-m", "benchmarks.baselines", name, str(city), str(share))
    row = {"our_seconds": ours["seconds_an_epoch"], "our_peak_gb": ours["peak_gb"]}
    if oracle is None:
        return row
    tool = str(_ROOT / "tools" / "recbole_oracle.py")
    words = ("train", OFFICIAL[name], str(city), "--time-epochs", str(share))
    theirs = _told_by(oracle, tool, *words)
    return {
        **row,
        "oracle_seconds": theirs["seconds_an_epoch"],
        "oracle_peak_gb": theirs["peak_gb"],
        "times_faster": theirs["seconds_an_epoch"] / ours["seconds_an_epoch"],
    }


def _told_by(*command: str) -> dict[str, float]:
    """The JSON object on the last line that a command prints."""
    ended = subprocess.run(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if ended.returncode:
        raise SystemExit(f"{' '.join(command)} ended with exit code {ended.returncode}")
    told: dict[str, float] = json.loads(ended.stdout.splitlines()[-1])
    return told


def _new_york(folder: Path) -> Path:
    """The folder of New York, or of a synthetic city of its size where it is absent."""
    if not _NEW_YORK.is_file():
        city_of_new_yorks_size(folder)
        return folder / "nyc-size"
    prepare([_NEW_YORK], folder / "nyc", Preparation(recipe=NYC))
    return folder / "nyc"


class PartOfAnEpoch:
    """An objective of which only the first batches of an epoch are learned."""

    def __init__(self, whole: Objective[Any], *, share: float) -> None:
        self.whole = whole
        self.share_of_batches = share

    def batches(self, epoch: int) -> Sequence[Any]:
        """The first batches of the epoch, at least one."""
        every = self.whole.batches(epoch)
        return every[: max(1, round(self.share_of_batches * len(every)))]

    def loss(self, model: nn.Module, batch: Any) -> Tensor:
        """That of the whole."""
        return self.whole.loss(model, batch)

    def targets(self, batch: Any) -> int:
        """Those of the whole."""
        return self.whole.targets(batch)

    def share(self, batch: Any, rank: int, ranks: int) -> Any:
        """That of the whole."""
        return self.whole.share(batch, rank, ranks)


def seconds_an_epoch(name: str, city: City, *, share: float) -> float:
    """Our seconds an epoch, from a part of the second of two, without validation."""
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
    """Measure one baseline of ours."""
    name, folder, share = sys.argv[1:]
    seconds = seconds_an_epoch(name, City.load(Path(folder), verify=False), share=float(share))
    peak_gb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(json.dumps({"seconds_an_epoch": seconds, "peak_gb": peak_gb}))


if __name__ == "__main__":
    main()
