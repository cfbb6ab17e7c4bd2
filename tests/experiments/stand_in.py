"""Plays castpoi in a process of its own: writes runs and results of one line, and obeys settings.

`--set fail=WORDS` ends a training with these words as castpoi would, `fall=WORDS` as Python would,
`crash=true` by a signal, `silent=true` without a word, and a `learning_rate=13` as if it diverged.
Every training was resumed after an epoch of 1000 seconds, and its run took 5000.
On validation every metric of a run is what `dropout` leaves of 1. The tables of every result are
those that lie in the city.
"""

import json
import os
import shutil
import signal
import sys
from hashlib import sha256
from itertools import pairwise
from pathlib import Path


def value_of(words: list[str], option: str) -> str:
    return words[words.index(option) + 1] if option in words else ""


def train(words: list[str]) -> None:
    settings = dict(each.split("=") for option, each in pairwise(words) if option == "--set")
    if "fail" in settings:
        sys.exit(f"castpoi: {settings['fail']}")
    if "fall" in settings:
        sys.exit(f"Traceback\n{settings['fall']}")
    if settings.get("learning_rate") == "13":
        sys.exit("castpoi: the loss of epoch 1 is no number")
    if "silent" in settings:
        os._exit(3)
    if "crash" in settings:
        os.kill(os.getpid(), signal.SIGKILL)
    sys.stdout.write(f"threads {os.environ['OMP_NUM_THREADS']}\n")
    run = Path(value_of(words, "--out"))
    run.mkdir(parents=True)
    city = json.loads((Path(words[1]) / "manifest.json").read_text())
    manifest = {
        "kind": "run",
        "method": value_of(words, "--model"),
        "seed": int(value_of(words, "--seed")),
        "part": value_of(words, "--part") or "test",
        "fingerprint": city["fingerprint"],
        "commit": "c0",
        "wall_seconds": 5000,
    }
    (run / "model.safetensors").write_bytes(b"weights")
    kept = 1 - float(settings.get("dropout", 0))
    validation = dict.fromkeys(("MRR", "HR@10"), kept)
    training = {"validation": validation, "best_epoch": 2, "epochs": 3}
    (run / "config.json").write_text(json.dumps({"training": training}))
    epoch = {"event": "epoch finished", "seconds": 1000}
    events = [epoch, {"event": "training resumed"}, epoch]
    (run / "log.jsonl").write_text("".join(json.dumps(each) + "\n" for each in events))
    write_manifest(run, manifest)


def evaluate(words: list[str]) -> None:
    city = Path(value_of(words, "--city"))
    result = Path(value_of(words, "--out"))
    if result.exists() and any(result.iterdir()):
        if kind_of(result) != "result":
            sys.exit(f"castpoi: {result} exists and is not a result; choose another --out")
        shutil.rmtree(result)
    result.mkdir(parents=True, exist_ok=True)
    made = {"method": value_of(words, "--model"), "seed": 0}
    if not made["method"]:
        run = json.loads((Path(words[1]) / "manifest.json").read_text())
        made = {name: run[name] for name in made}
    fingerprint = json.loads((city / "manifest.json").read_text())["fingerprint"]
    told = {"kind": "result", "fingerprint": fingerprint, "part": "test", "seconds": 1.0, **made}
    told |= {"row": {}, "known_time": False, "places": 5, "users": 3, "checkins": 12}
    for table in ("ranks.parquet", "metrics.json"):
        shutil.copyfile(city / table, result / table)
    write_manifest(result, told)


def write_manifest(folder: Path, manifest: dict[str, object]) -> None:
    """Like castpoi.core.checksums, whose imports would take a second."""
    checksums = {path.name: sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
    whole = json.dumps({**manifest, "sha256": checksums})
    checksums["manifest.json"] = sha256(whole.encode()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps({**manifest, "sha256": checksums}))


def kind_of(folder: Path) -> object:
    try:
        return json.loads((folder / "manifest.json").read_text())["kind"]
    except (OSError, ValueError):
        return None


if __name__ == "__main__":
    {"train": train, "evaluate": evaluate}[sys.argv[1]](sys.argv[1:])
