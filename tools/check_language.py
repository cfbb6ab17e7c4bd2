"""Find retired words in our own text, offline.

    python tools/check_language.py [PATH ...]      default: all text of the repository

CONTRIBUTING.md lists the rules. A line that quotes data or other people's words ends with
`language: quoted` in a comment.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
CHECKED: Final = (
    *("src", "docs", "tests", "chaos", "benchmarks", "tools"),
    *("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "results/README.md"),
    *("Makefile", "Dockerfile", "compose.yaml", "pyproject.toml"),
)
SUFFIXES: Final = {".py", ".md", ".js", ".html", ".j2", ".css", ".toml"}
QUOTED: Final = "language: quoted"

INSTEAD: Final[Mapping[str, str]] = {
    r"foret(?:ell\w*|old)": "predict, predicted, forecast",
    r"(?:un)?told|tells?(?!\(\))|telling": "return, report, give; or the value's name",
    r"mend(?:s|ed|ing)?": "fix",
    r"likest(?:[_ ]places)?": "most similar places",
    r"dear(?:er|est)? (?:terms?|parts?|work)": "expensive",
    r"st(?:ands?(?![-_]in| out)|ood|anding)": "is, is in, is next to, represents",
    r"so many": "that many, a number",
    r"goes far": "does well",
    r"speaks?": "supports, states",
    r"to the letter": "exactly",
    r"papers of (?:a|the|its|every) \w+": "metadata",
    r"proofs?": "record",
    r"anew": "again, new, regenerated",
    r"who(?:so)?ever": "a user who, anybody who",
    r"no word": "without a message",
    r"ways? out|way_out": "how to fix it",
    r"look(?:s|ed|ing)?[ _]away": "null attention",
    r"(?:windows|targets|histories)[ _]a[ _]step": "windows_per_step",
    r"workshops?": "checkpoint_dir",
    r"door[ _]?keepers?": "AuthMiddleware",
    r"visit[ _]desk": "visit_codec",
    r"surroundings": "context",
    r"(?:goes|go|went|going) on": "resume, continue",
    r"witness(?:es)?": "visit contribution",
    r"kn[oe]ws? (?:nothing|no|of)": "has no, does not depend on",
    r"that only counts?": "counting baseline",
    r"hears?|heard|listen(?:s|ed)? to": "receive, use",
    r"slopes?": "gradient, grad",
    r"(?<!by )(?<!to )chances?": "probability",
    r"(?-i:Former|Lesson|Course|Answerer)": "PastRun, LossInputs, TrainingPlan, Recommender",
}
"""Retired words, as regular expressions, and what to write instead."""

_ANY: Final = re.compile(
    rf"(?<![a-zA-Z])(?:{'|'.join(f'({words})' for words in INSTEAD)})(?![a-zA-Z])", re.IGNORECASE
)


def retired_words(text: str) -> Iterator[tuple[int, str, str]]:
    """Line number, retired word and replacement of every hit in a text."""
    instead = list(INSTEAD.values())
    for number, line in enumerate(text.splitlines(), 1):
        if QUOTED not in line:
            for hit in _ANY.finditer(line):
                yield number, hit.group(0), instead[(hit.lastindex or 1) - 1]


def files_of(paths: list[Path]) -> Iterator[Path]:
    """The given files and the texts in the given folders; not this one, its tests and vendors'."""
    own = {Path(__file__).name, f"test_{Path(__file__).name}"}
    for path in paths:
        texts = (file for file in sorted(path.rglob("*")) if file.suffix in SUFFIXES)
        found = (file for file in texts if "vendor" not in file.parts)
        yield from (file for file in (found if path.is_dir() else [path]) if file.name not in own)


def main() -> int:
    """Print every hit; the exit code is 1 if there is one."""
    paths = [Path(word) for word in sys.argv[1:]] or [ROOT / name for name in CHECKED]
    hits = 0
    for file in files_of([path for path in paths if path.exists()]):
        for number, word, instead in retired_words(file.read_text(encoding="utf-8")):
            hits += 1
            print(f"{file}:{number}: '{word}' is retired; write: {instead}")
    print(f"{hits} retired words" if hits else "no retired words")
    return 1 if hits else 0


if __name__ == "__main__":
    sys.exit(main())
