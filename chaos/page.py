"""The table of all attacks: on the screen, in docs/reliability.md and in results/chaos.json."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from chaos.outcome import Outcome

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = ROOT / "docs" / "reliability.md"
RECORD: Final = ROOT / "results" / "chaos.json"

_BLOCK: Final = re.compile(r"(?<=<!-- chaos -->\n).*?(?=<!-- end -->)", re.DOTALL)


def table_of(outcomes: Sequence[Outcome]) -> str:
    """The outcomes as a table in Markdown."""
    lines = ["| what | tried | withstood | lost |", "| --- | ---: | ---: | ---: |"]
    for each in outcomes:
        numbers = (
            f"{each.tried:,} | {each.withstood:,} | {each.lost:,}"
            if each.skipped is None
            else f"skipped: {each.skipped} | – | –"
        )
        lines.append(f"| {each.attack} | {numbers} |")
    return "".join(f"{line}\n" for line in lines)


def summary_of(record: dict[str, Any]) -> str:
    """Commit, seed and time of the run, in one sentence."""
    return (
        f"`make chaos` at commit `{str(record['commit'])[:12]}`, seed {record['seed']}: "
        f"{record['seconds']:.0f} s, of them {record['cpu_seconds']:.0f} s of CPU time.\n"
    )


def block_of(record: dict[str, Any]) -> str:
    """The text between the marks of the page."""
    outcomes = [Outcome.from_dict(row) for row in record["rows"]]
    return f"{table_of(outcomes)}\n{summary_of(record)}"


def with_block(text: str, block: str) -> str:
    """The text of the page with its block replaced."""
    found = len(_BLOCK.findall(text))
    if found != 1:
        raise SystemExit(f"{PAGE.name} has {found} places for the table of `make chaos`, not one")
    return _BLOCK.sub(lambda _: block, text)
