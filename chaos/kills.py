"""`kill -9` at every change of a name and at random moments; then the same command again."""

import random
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from chaos.attack import Arena
from chaos.commands import (
    Command,
    adding_commands,
    folder_commands,
    slow_file_server,
    synthesize_commands,
)
from chaos.outcome import Outcome
from chaos.process import Ended, castpoi

RANDOM_KILLS: Final = 2
"""Kills of each command, and as many of each with --overwrite."""
LAST_CHANGES: Final = 4
"""The last changes of a name, all tried: there OUT appears or is replaced."""
OTHER_CHANGES: Final = 3
"""A sample of the changes before those."""


@dataclass(frozen=True)
class Subject:
    """A command, the folder of its trials, and the files of an unkilled run."""

    command: Command
    folder: Path
    digests: dict[str, str]
    seconds: float

    def changes(self, *, overwrite: bool) -> int:
        """The number of changes of a name in an unkilled run."""
        folder = self.folder / f"unkilled-{overwrite}"
        self._begin(folder, overwrite=overwrite)
        return castpoi(*self.command.to(folder, overwrite=overwrite), folder=folder).changes

    def _begin(self, folder: Path, *, overwrite: bool) -> None:
        """Create the folder of a trial, with a former OUT if it is to be replaced."""
        folder.mkdir()
        if overwrite:
            reference = self.folder / "reference" / self.command.out
            copy = shutil.copytree if reference.is_dir() else shutil.copy
            copy(reference, folder / self.command.out)

    def trial(self, label: str, *, overwrite: bool = False, **kill: float | int) -> "Trial":
        """Kill the command once, run it again, and compare."""
        folder = self.folder / label.replace(" ", "-")
        self._begin(folder, overwrite=overwrite)
        words = self.command.to(folder, overwrite=overwrite)
        ended = castpoi(*words, folder=folder, **kill)  # type: ignore[arg-type]
        if not ended.was_killed:
            return Trial(hit=False, problems=[])
        problems = self._after_kill(folder, overwrite=overwrite)
        again = castpoi(*words, folder=folder)
        problems += self._after_repeat(folder, again, overwrite=overwrite)
        shutil.rmtree(folder)
        return Trial(hit=True, problems=[f"{self.command.name}, {label}: {p}" for p in problems])

    def _after_kill(self, folder: Path, *, overwrite: bool) -> list[str]:
        """OUT must be whole, or absent if it was absent before."""
        if not self.command.overwrites:
            return []
        found = self.command.digests(folder)
        if overwrite and not found:
            return ["the former OUT is gone after the kill"]
        return ["OUT is torn after the kill"] if found and found != self.digests else []

    def _after_repeat(self, folder: Path, again: Ended, *, overwrite: bool) -> list[str]:
        """The same command must finish, with OUT as in an unkilled run, and leave nothing else."""
        is_refused = again.code == 1 and self.command.overwrites and not overwrite
        found = self.command.digests(folder)
        problems = []
        if again.code and not (is_refused and found == self.digests):
            problems.append(f"the same command again: {(again.out or again.err)[:200]}")
        elif found != self.digests:
            differs = sorted(dict(found.items() ^ self.digests.items()))
            problems.append(f"{', '.join(differs[:5])} differ from those of an unkilled run")
        left = sorted(path.name for path in folder.iterdir() if path.name != self.command.out)
        return [*problems, f"{', '.join(left)} left behind"] if left else problems


@dataclass(frozen=True)
class Trial:
    """Whether the kill came before the command had ended, and what was lost."""

    hit: bool
    problems: list[str]


def attack(arena: Arena) -> Iterator[Outcome]:
    """Kill every command in every way."""
    with ExitStack() as stack:
        stack.enter_context(slow_file_server())
        commands = [
            *adding_commands(arena.inputs),
            *folder_commands(arena.inputs),
            *synthesize_commands(),
        ]
        with ThreadPoolExecutor(arena.workers) as pool:
            yield from pool.map(lambda command: kill_everywhere(command, arena), commands)


def kill_everywhere(command: Command, arena: Arena) -> Outcome:
    """Kill one command at every change of a name and at random moments."""
    subject = _subject(command, arena.folder / command.name.replace(" ", "-"))
    rng = random.Random(f"{arena.seed} {command.name}")
    outcome = Outcome(attack=f"`kill -9` of {command.name}")
    for overwrite in (False, True) if command.overwrites else (False,):
        kind = "overwrite" if overwrite else "new"
        for number in chosen(subject.changes(overwrite=overwrite), rng):
            label = f"{kind} before change {number}"
            trial = subject.trial(label, overwrite=overwrite, kill_at=number)
            if trial.hit:
                outcome.trial(trial.problems)
        for number in range(RANDOM_KILLS):
            seconds = subject.seconds * rng.uniform(0.2, 1)
            label = f"{kind} at random {number}"
            trial = subject.trial(label, overwrite=overwrite, kill_after=seconds)
            if trial.hit:
                outcome.trial(trial.problems)
    arena.report(f"{outcome.attack}: {outcome.tried} kills, {outcome.lost} lost something")
    return outcome


def chosen(changes: int, rng: random.Random) -> list[int]:
    """The changes, counted from 1, before which the command is killed."""
    before = range(1, max(changes - LAST_CHANGES, 0) + 1)
    others = rng.sample(before, min(OTHER_CHANGES, len(before)))
    return sorted(others) + list(range(len(before) + 1, changes + 1))


def _subject(command: Command, folder: Path) -> Subject:
    """Run the command once without a kill."""
    reference = folder / "reference"
    reference.mkdir(parents=True)
    ended = castpoi(*command.to(reference), folder=reference)
    if ended.code:
        raise SystemExit(f"{command.name} fails unkilled: {ended.out}{ended.err}")
    return Subject(command, folder, command.digests(reference), ended.seconds)
