"""Groups of verbs that import a verb only when it is called, so that `--help` stays quick."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click


class LazyGroup(click.Group):
    """A group whose verbs live in modules of their own: verb -> (module, one line of help).

    The command in a module has the name of the verb.
    """

    def __init__(
        self, *arguments: Any, verbs: Mapping[str, tuple[str, str]] | None = None, **settings: Any
    ) -> None:
        super().__init__(*arguments, **settings)
        self.verbs = verbs or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The verbs, in the order of the road."""
        return list(self.verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one verb."""
        if cmd_name not in self.verbs:
            return None
        command: click.Command = getattr(import_module(self.verbs[cmd_name][0]), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The verbs with one line each, without importing any of them."""
        with formatter.section("Verbs"):
            formatter.write_dl([(verb, line) for verb, (_, line) in self.verbs.items()])
