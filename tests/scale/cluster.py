"""Recommends to all users of a run on a cluster of two machines, one of which is killed.

    python -m tests.scale.cluster RUN OUT

`Cluster` works in the main thread only, so the job runs in another one.
"""

import sys
import time
from pathlib import Path
from threading import Thread

from ray.cluster_utils import Cluster

from castpoi.recommend.people import people_of
from castpoi.recommend.recommender import load
from castpoi.scale import ray_batch


def main(run: Path, out: Path) -> None:
    """Kill the second machine after the first answers."""
    vars(ray_batch)["ROWS"] = 4
    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False}
    )
    second = cluster.add_node(num_cpus=2)
    cluster.wait_for_nodes()
    recommender = load(run)
    people = people_of(recommender, k=5)
    done: list[dict[str, int]] = []

    def job() -> None:
        found = ray_batch.write_batch_on_ray(
            {"run": run}, recommender.run.model_sha256, people, out, address=cluster.address
        )
        done.append(found)

    thread = Thread(target=job)
    thread.start()
    answers = out.with_name(f"{out.name}.parts") / "answers"
    while thread.is_alive() and not list(answers.glob("*.parquet")):
        time.sleep(0.05)
    assert thread.is_alive()  # it still works while the machine is killed
    cluster.remove_node(second, allow_graceful=False)
    thread.join()
    cluster.shutdown()  # type: ignore[no-untyped-call]
    assert done


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
