"""Two commands that write to one OUT at once: one finishes, the other is refused."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from chaos.attack import Arena
from chaos.outcome import Outcome
from chaos.process import Ended, castpoi

PAIRS: Final = 6


def attack(arena: Arena) -> Iterator[Outcome]:
    """Let pairs of commands race for one OUT."""
    inputs = arena.inputs
    people = ("data", "synthesize", "--users", 20, "--places", 40, "--days", 30)
    pairs: list[tuple[str, list[tuple[object, ...]]]] = [
        ("prepare", [("data", "prepare", inputs.table)] * 2),
        ("train", [("train", inputs.city, "--model", method) for method in ("markov", "revisit")]),
        ("synthesize", [(*people, "--seed", seed) for seed in (1, 2)]),
    ]
    for name, pair in pairs:
        outcome = Outcome(attack=f"two writers on one OUT: {name}")
        for number in range(PAIRS):
            outcome.trial(race(arena, f"{name}-{number}", pair))
        arena.report(f"{outcome.attack}: {outcome.tried} tried, {outcome.lost} lost")
        yield outcome


def race(arena: Arena, name: str, pair: list[tuple[object, ...]]) -> list[str]:
    """Start both at once; returns the losses."""
    folder = arena.folder / name
    folder.mkdir()

    def run(words: tuple[object, ...]) -> Ended:
        return castpoi(*words, "--out", folder / "out", folder=folder)

    with ThreadPoolExecutor(2) as pool:
        ended = list(pool.map(run, pair))
    winners = [each for each in ended if each.code == 0]
    problems = [] if len(winners) == 1 else [f"{len(winners)} of 2 writers ended with 0"]
    unclear = [each.why_unclear() for each in ended if each.code != 0]
    problems += [fault for fault in unclear if fault is not None]
    left = sorted(path.name for path in folder.iterdir() if path.name != "out")
    problems += [f"{', '.join(left)} left behind"] if left else []
    return [f"{name}: {each}" for each in problems]
