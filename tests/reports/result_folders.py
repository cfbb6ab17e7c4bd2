"""Result folders made by hand, with ranks that are easily counted."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from castpoi.evaluation.beyond import BeyondAccuracy, calibration
from castpoi.evaluation.result import Result
from tests.evaluation.results import result_of as plain_result

PLACES = 400
FINGERPRINT = "f" * 64


def result_of(
    ranks: Sequence[float],
    *,
    method: str,
    seed: int = 0,
    fingerprint: str = FINGERPRINT,
    part: str = "test",
    preset: str | None = None,
    settings: Mapping[str, str] | None = None,
    **more: Any,
) -> Result:
    """A result with these ranks; every second target is a revisit, half a kilometre on."""
    count, numbers = len(ranks), range(len(ranks))
    manifest = {
        "fingerprint": fingerprint,
        "row": {"method": method, "preset": preset, "settings": dict(settings or {})},
        "part": part,
        "checkins": 40 * count,
        "command": f"castpoi evaluate RUN --out {method}-{seed}",
        "versions": {"castpoi": "0.1.0", "python": "3.11.7"},
        "commit": "abcdef0123",
        "seconds": 2.5,
        **more,
    }
    plain = plain_result(
        ranks,
        method=method,
        seed=seed,
        places=PLACES,
        manifest=manifest,
        place=[number % PLACES for number in numbers],
        is_revisit=[number % 2 == 0 for number in numbers],
        history_length=[10 + 7 * number for number in numbers],
        place_count_in_train=[1 + number % 9 for number in numbers],
        km_from_last_visit=[0.5 * number for number in numbers],
        hours_since_last_visit=[float(number) for number in numbers],
    )
    # the first place is the target where its rank is 1, and 2 km away elsewhere
    is_right = np.asarray(ranks) == 1
    km_off = np.where(is_right, 0.0, 2.0)
    beyond = BeyondAccuracy(
        median_km_off=float(np.median(km_off)),
        mean_km_off=float(km_off.mean()),
        coverage=0.5,
        popularity_of_first=4.0,
        popularity_of_listed=3.0,
        popularity_of_target=2.0,
        calibration=calibration(np.full(count, 0.3), is_right),
    )
    return replace(plain, beyond=beyond, seconds=2.5)


def shaken(count: int, *, worse: float, seed: int) -> list[float]:
    """Ranks of a method; the same people are hard for all, a worse method ranks them lower."""
    hard = np.random.default_rng(1).exponential(12.0, count)
    luck = np.random.default_rng(seed).normal(1.0, 0.1, count)
    return np.clip(np.ceil(hard * luck * (1 + worse)), 1, PLACES).tolist()  # type: ignore[no-any-return]


def a_row(name: str, role: str, **more: Any) -> dict[str, Any]:
    """A row of suite.json."""
    row = {"name": name, "label": name.upper(), "method": name, "role": role}
    return {**row, "preset": None, "settings": {}, **more}


OURS = a_row("castpoi", "ours", label="CaST-POI", preset="fast")
VARIANT = a_row(
    "no-spatial-bias",
    "ablation",
    label="w/o spatial bias",
    method="castpoi",
    preset="fast",
    settings={"spatial_bias": "false"},
)
SASREC = a_row("sasrec", "baseline", label="SASRec", preset="paper")
REVISIT = a_row("revisit", "heuristic", label="Revisit <heuristic> & co_1")

_METRICS = ["HR@5", "HR@10", "MRR"]
TABLES = {
    "ablation": {
        "title": "Ablation",
        "rows": [{**OURS, "label": "Full model"}, VARIANT],
        "families": [
            {
                "name": "drop",
                "row": "castpoi",
                "against": ["no-spatial-bias"],
                "metrics": _METRICS,
                "together": "cell",
            }
        ],
    },
    "main": {
        "title": "Main table",
        "rows": [SASREC, REVISIT, OURS],
        "families": [
            {
                "name": "improvement",
                "row": "castpoi",
                "against": "strongest baseline",
                "metrics": _METRICS,
                "together": "table",
            }
        ],
    },
}
_WORSE = {"castpoi": 0.0, "no-spatial-bias": 0.4, "sasrec": 0.6, "revisit": 1.5}


def write_suite(
    root: Path,
    *,
    cities: Sequence[str] = ("oldtown",),
    seeds: Sequence[int] = (1, 2),
    tables: Mapping[str, Any] = TABLES,
    targets: int = 120,
    unfinished: Mapping[str, str] | None = None,
) -> Path:
    """The folder of a suite as `castpoi reproduce` leaves it."""
    rows = {row["name"]: row for table in tables.values() for row in table["rows"]}
    experiments: dict[str, Any] = {}
    for number, city in enumerate(cities):
        for row in rows.values():
            for seed in [0] if row["role"] == "heuristic" else seeds:
                name = f"{city}/{row['name']}/{seed}"
                ranks = shaken(targets, worse=_WORSE[row["name"]], seed=seed)
                fingerprint = str(number) * 64
                result = result_of(
                    ranks, method=row["method"], seed=seed, fingerprint=fingerprint,
                    experiment=_experiment(city, row, seed), **_trained(row),
                )  # fmt: skip
                result.save(root / name)
                if row["role"] != "heuristic":
                    _write_run(root / name)
                experiments[name] = {"city": city, "row": row["name"], "seed": seed}
                experiments[name] |= {"state": "done", "why": ""}
    for name, why in (unfinished or {}).items():
        state, _, why = why.partition(": ")
        experiments[name] = {"state": state, "why": why}
    named = {city: {"folder": f"/{city}"} for city in cities}
    suite = {"kind": "suite", "tables": tables, "cities": named, "experiments": experiments}
    (root / "suite.json").write_text(json.dumps(suite))
    return root


def _trained(row: Mapping[str, Any]) -> dict[str, Any]:
    trained = {} if row["role"] == "heuristic" else {"trained": {"wall_seconds": 90.0}}
    if row["name"] != "castpoi":
        return trained
    return {
        **trained,
        "learned": {
            "spatial": {"edges": [0.5, 2.0], "values": [0.5, 0.0, -0.5]},
            "temporal": {"edges": [1.0, 24.0, 168.0], "values": [0.1, 0.2, 0.0, -0.1]},
        },
    }


def _experiment(city: str, row: Mapping[str, Any], seed: int) -> dict[str, Any]:
    commands = [f"castpoi train {city} --model {row['method']} --seed {seed}"]
    return {"city": city, "row": row, "seed": seed, "commands": commands}


def _write_run(result: Path) -> None:
    (result / "run").mkdir()
    (result / "run" / "manifest.json").write_text(json.dumps({"kind": "run"}))
    (result / "run" / "config.json").write_text("{}")
    events = [{"event": "training started", "parameters": 1234}]
    events += [
        {"event": "epoch finished", "epoch": epoch, "loss": 5.0 / epoch, "metrics": {"HR@10": 0.2}}
        for epoch in (1, 2, 3)
    ]
    events.append({"event": "training finished", "epochs": 3, "best_epoch": 2})
    (result / "run" / "log.jsonl").write_text("".join(json.dumps(e) + "\n" for e in events))
