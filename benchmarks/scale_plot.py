"""Figure of docs/scale.md: `python -m benchmarks.scale_plot results/bench-scale.json OUT.svg`."""

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt

mpl.use("Agg")


def main(source: Path, out: Path) -> None:
    """Draw the cost of a request and of training by the number of places."""
    results: dict[str, dict[str, Any]] = json.loads(source.read_text())
    requests, training = results["requests-at-scale"], results["training-at-scale"]
    places = [int(name.split()[0].replace(",", "")) for name in requests]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    rows = [each["plain"] for each in requests.values()]
    left.plot(places, [each["full_p50_ms"] for each in rows], "o--", label="every place is scored")
    left.plot(places, [each["p50_ms"] for each in rows], "o-", label="with the index")
    left.set_ylabel("CPU ms of one request, median")
    for name, label in (("fast", "over all places"), ("sampled", "sampled")):
        found = [each.get(f"{name}_targets_per_second") for each in training.values()]
        right.plot(places, found, "o--" if name == "fast" else "o-", label=label)
    right.set_ylabel("training targets a CPU second")
    for axes in (left, right):
        axes.set(xscale="log", yscale="log", xlabel="places")
        axes.legend(frameon=False)
        axes.grid(alpha=0.3)
    mpl.rcParams["svg.hashsalt"] = "castpoi"  # the same file for the same numbers
    figure.savefig(out, metadata={"Date": None})


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
