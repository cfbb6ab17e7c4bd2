"""Commands on a full disk: one sentence, nothing half written, and success once there is room."""

import shutil
from collections.abc import Iterator
from typing import Final

from chaos.attack import Arena
from chaos.commands import Command, folder_commands
from chaos.disk import small_disk
from chaos.outcome import Outcome, skipped
from chaos.process import castpoi

SHARES: Final = (0.0, 0.3, 0.8)
"""Of the room that a command needs."""
_PAGE: Final = 4096


def attack(arena: Arena) -> Iterator[Outcome]:
    """Run every command that writes a folder on a disk with too little room."""
    for command in folder_commands(arena.inputs):
        outcome = fill_up(arena, command)
        arena.report(f"{outcome.attack}: {outcome.tried} tried, {outcome.lost} lost")
        yield outcome


def fill_up(arena: Arena, command: Command) -> Outcome:
    """Run one command with too little room, several times."""
    outcome = Outcome(attack=f"disk full under {command.name}")
    reference = arena.folder / f"{command.name}-reference"
    reference.mkdir()
    castpoi(*command.to(reference), folder=reference)
    digests = command.digests(reference)
    files = [each for each in reference.rglob("*") if each.is_file()]
    pages = sum(-(-each.stat().st_size // _PAGE) for each in files)
    for share in SHARES:
        disk = small_disk(arena.folder / f"{command.name}-{share}", megabytes=16)
        if isinstance(disk, str):
            return skipped(outcome.attack, disk)
        with disk as room:
            work = room.folder / "work"
            work.mkdir()
            ballast = room.folder / "ballast"
            free = shutil.disk_usage(room.folder).free
            ballast.write_bytes(bytes(free - int(share * pages) * _PAGE))
            fault = castpoi(*command.to(work), folder=work).why_unclear()
            problems = [] if fault is None else [fault]
            is_kept = command.name == "train"  # its checkpoints stay, so that it can resume
            left = [] if is_kept else [each.name for each in work.rglob("*") if each.is_file()]
            problems += [f"{', '.join(sorted(left)[:5])} left behind"] if left else []
            ballast.unlink()
            again = castpoi(*command.to(work), folder=work)
            if again.code or command.digests(work) != digests:
                problems.append(f"not finished after room was made: {again.out[:160]}")
            outcome.trial(
                [f"{command.name} with {share:.0%} of its room: {each}" for each in problems]
            )
    return outcome
