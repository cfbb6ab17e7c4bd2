"""Plays castpoi in a process of its own: writes runs and results of one line, and obeys settings.

`--set fail=WORDS` ends a training with these words as castpoi would, `fall=WORDS` as Python would,
`crash=true` by a signal, `silent=true` without a word, and a `learning_rate=13` as if it diverged.
On validation every metric of a run is what `dropout` leaves of 1.
"""

import json
import os
import signal
import sys
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
    manifest = {"kind": "run", "city": words[1], "fingerprint": city["fingerprint"], "commit": "c0"}
    (run / "manifest.json").write_text(json.dumps(manifest))
    kept = 1 - float(settings.get("dropout", 0))
    validation = dict.fromkeys(("MRR", "HR@10"), kept)
    training = {"validation": validation, "best_epoch": 2, "epochs": 3}
    (run / "config.json").write_text(json.dumps({"training": training}))
    (run / "log.jsonl").write_text(json.dumps({"event": "epoch finished", "seconds": 1000}) + "\n")


def evaluate(words: list[str]) -> None:
    city = Path(value_of(words, "--city"))
    result = Path(value_of(words, "--out"))
    fingerprint = json.loads((city / "manifest.json").read_text())["fingerprint"]
    result.mkdir(parents=True, exist_ok=True)
    manifest = {"kind": "result", "fingerprint": fingerprint}
    (result / "manifest.json").write_text(json.dumps(manifest))


if __name__ == "__main__":
    {"train": train, "evaluate": evaluate}[sys.argv[1]](sys.argv[1:])
