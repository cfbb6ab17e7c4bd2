"""Odd and bad tables: each is refused in one sentence, or read like the plain one."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from chaos.attack import Arena
from chaos.odd_tables import OddTable, odd_tables, plain
from chaos.outcome import Outcome
from chaos.process import Ended, castpoi

PEAK_MB: Final = 700
"""More memory than any of these tables needs."""
SECONDS: Final = 30.0


def attack(arena: Arena) -> Iterator[Outcome]:
    """Prepare every table in its own process."""
    control = OddTable(name="plain", content=plain, is_same=True)
    wanted = json.loads(prepared(arena, control).out)["fingerprint"]
    read = Outcome(attack="odd tables with the content of a plain one: the same fingerprint")
    refused = Outcome(attack="bad tables: refused in one sentence")
    tables = list(odd_tables())
    with ThreadPoolExecutor(arena.workers) as pool:
        for each, ended in zip(tables, pool.map(lambda t: prepared(arena, t), tables), strict=True):
            problem = fault_of(each, ended, wanted)
            outcome = read if each.is_same else refused
            outcome.trial([] if problem is None else [f"{each.name}: {problem}"])
    for outcome in (read, refused):
        arena.report(f"{outcome.attack}: {outcome.tried} tried, {outcome.lost} lost")
        yield outcome


def prepared(arena: Arena, odd: OddTable) -> Ended:
    """Write the table and prepare it."""
    folder = arena.folder / "".join(each if each.isalnum() else "-" for each in odd.name)
    folder.mkdir()
    source = folder / f"table.{odd.ending}"
    source.write_bytes(odd.content())
    out = folder / "city"
    ended = castpoi("data", "prepare", source, *odd.options, "--out", out,
                    folder=folder, patience=SECONDS)  # fmt: skip
    source.unlink()
    return ended


def fault_of(odd: OddTable, ended: Ended, wanted: str) -> str | None:
    """Why the result for a table is wrong; None if it is right."""
    if ended.was_killed:
        return f"not finished within {SECONDS:.0f} s"
    if ended.peak_mb > PEAK_MB:
        return f"took {ended.peak_mb:.0f} MB"
    if ended.code == 0:
        is_plain = json.loads(ended.out)["fingerprint"] == wanted
        return None if is_plain else "accepted with another fingerprint than the plain table"
    unclear = ended.why_unclear()
    if unclear is None and odd.is_same:
        return f"refused: {json.loads(ended.out)['error'][:160]}"
    return unclear
