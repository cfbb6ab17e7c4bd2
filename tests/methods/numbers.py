"""The scores of every method after a tiny training: `numbers.json`, compared in its contract.

Scores that move need a higher `Method.version`, so that suites make older results again. Then
`python -m tests.methods.numbers` writes the file.
"""

import json
from pathlib import Path
from typing import Any, Final

import numpy as np

from castpoi.methods.registry import METHODS, Method

NUMBERS: Final = Path(__file__).with_name("numbers.json")
_TOLERANCE: Final = 1e-3
"""Share of the spread of the scores: far more than machines round differently."""


def check_numbers(case: str, method: Method, scores: Any) -> None:
    """Compare the scores of a method with those of its version."""
    known = json.loads(NUMBERS.read_text()).get(case)
    assert known is not None, f"{NUMBERS.name} lacks {case}; python -m tests.methods.numbers"
    assert known["version"] == method.version, "python -m tests.methods.numbers"
    assert _is_close(known["scores"], scores), (
        f"the scores of {case} moved; if they should, raise the version of {method.name} in "
        "methods/registry.py, then python -m tests.methods.numbers"
    )


def _is_close(known: list[list[float]], scores: Any) -> bool:
    expected = np.array(known)
    return bool(np.abs(expected - scores).max() <= _TOLERANCE * np.ptp(expected))


def write() -> None:
    """Write all scores; refuse those that moved without a new version."""
    from tests.contract import scores_of

    known = json.loads(NUMBERS.read_text()) if NUMBERS.exists() else {}
    found = {}
    for method in METHODS:
        for preset in method.presets or (None,):
            case = f"{method.name} {preset}" if preset else method.name
            scores = scores_of(method, preset)
            if known.get(case, {}).get("version") == method.version:
                check_numbers(case, method, scores)
                found[case] = known[case]
            else:
                rounded = [[float(f"{each:.6g}") for each in row] for row in scores.tolist()]
                found[case] = {"version": method.version, "scores": rounded}
    lines = (f" {json.dumps(case)}: {json.dumps(one)}" for case, one in found.items())
    NUMBERS.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    write()
