"""Trains on a cluster of two machines, one of which is killed after the first epoch and replaced.

    python -m tests.scale.lost_machine CITY OUT

`Cluster` works in the main thread only, so the training runs in another one.
"""

import sys
import time
from pathlib import Path
from threading import Thread

from ray.cluster_utils import Cluster

from castpoi.scale.ray_train import train_on_ray
from castpoi.training.checkpoint import STATE
from castpoi.training.job import TrainingOptions
from castpoi.training.train import checkpoint_dir_of

SETTINGS = {"epochs": "6", "width": "16", "dropout": "0", "threads": "1"}


def main(city: Path, out: Path) -> None:
    """Kill the second machine after the first checkpoint, and start a third one."""
    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
    )
    second = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    trained = []

    def job() -> None:
        options = TrainingOptions(settings=SETTINGS)
        trained.append(
            train_on_ray(
                city,
                out,
                workers=2,
                address=cluster.address,
                method="castpoi-next",
                options=options,
            )
        )

    thread = Thread(target=job)
    thread.start()
    while thread.is_alive() and not (checkpoint_dir_of(out) / STATE).exists():
        time.sleep(0.05)
    assert thread.is_alive()  # it still trains while the machine is killed
    cluster.remove_node(second, allow_graceful=False)
    cluster.add_node(num_cpus=1)
    thread.join()
    cluster.shutdown()  # type: ignore[no-untyped-call]
    assert trained


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
