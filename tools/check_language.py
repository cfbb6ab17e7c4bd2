"""Find retired words in our own text, offline; `make lint` runs it.

    python tools/check_language.py [PATH ...]      the default: src, docs, README and the like

CONTRIBUTING.md says which words we write instead. A line that quotes data or somebody else's words
ends with `language: quoted` in a comment.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
CHECKED: Final = ("src", "docs", "chaos", "benchmarks", "README.md", "CONTRIBUTING.md", "tools")
SUFFIXES: Final = {".py", ".md", ".js", ".html", ".j2", ".css", ".toml"}
QUOTED: Final = "language: quoted"

INSTEAD: Final[Mapping[str, str]] = {
    r"foret(?:ell|ells|elling|old)": "predict, predicted, forecast",
    r"told|tells?|telling": "return, report, give; or the value's name",
    r"mend(?:s|ed|ing)?": "fix",
    r"likest(?:_\w+)?": "most similar",
    r"dear(?:er|est)? terms?": "expensive term",
    r"stands? (?:for|beside|among|apart|there|in the way)": "represents, is next to, is in",
    r"standing (?:for|beside|among)": "represents, is next to, is in",
    r"so many": "that many, a number",
    r"anew": "again, new, regenerated",
    r"whoever": "a user who, anybody who",
    r"no word": "without a message",
    r"ways? out|way_out": "how to fix it",
    r"look(?:s|ed|ing)?[ _]away": "null attention",
    r"windows_a_step": "windows_per_step",
    r"workshop": "checkpoint_dir",
    r"doorkeeper": "AuthMiddleware",
    r"surroundings": "context",
    r"goes on|go on|went on|going on": "resume, continue",
    r"witness(?:es)?": "visit contribution",
    r"knows? (?:nothing|no|of)": "has no, does not depend on",
}
"""Retired words, as regular expressions, and what to write instead."""

_ANY: Final = re.compile(rf"\b(?:{'|'.join(f'({words})' for words in INSTEAD)})\b", re.IGNORECASE)


def retired_words(text: str) -> Iterator[tuple[int, str, str]]:
    """Line number, retired word and replacement of every hit in a text."""
    instead = list(INSTEAD.values())
    for number, line in enumerate(text.splitlines(), 1):
        if QUOTED in line:
            continue
        for hit in _ANY.finditer(line):
            yield number, hit.group(0), instead[(hit.lastindex or 1) - 1]


def _files(paths: list[Path]) -> Iterator[Path]:
    for path in paths:
        found = sorted(path.rglob("*")) if path.is_dir() else [path]
        yield from (file for file in found if file.is_file() and file.suffix in SUFFIXES)


def main() -> int:
    """Print every hit; exit 1 if there is one."""
    paths = [Path(word) for word in sys.argv[1:]] or [ROOT / name for name in CHECKED]
    hits = 0
    for file in _files([path for path in paths if path.exists()]):
        if file.resolve() == Path(__file__).resolve():
            continue
        for number, word, instead in retired_words(file.read_text(encoding="utf-8")):
            hits += 1
            print(f"{file}:{number}: '{word}' is retired; write: {instead}")
    print(f"{hits} retired words" if hits else "no retired words")
    return 1 if hits else 0


if __name__ == "__main__":
    sys.exit(main())
