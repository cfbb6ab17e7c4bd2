"""Options that take several values at once, as `--seeds 42 43 44`, which click does not know."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import click


class TakesSeveral(click.Command):
    """A command some of whose `multiple` options may be followed by more than one value.

    `several` tells for each such option which words belong to it; the values of one word may also
    stand with commas between them.
    """

    def __init__(
        self,
        *arguments: Any,
        several: Mapping[str, Callable[[str], bool]] | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(*arguments, **settings)
        self.several = several or {}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words as if the option stood before every one of its values."""
        return super().parse_args(ctx, list(self._spread(args)))

    def _spread(self, words: list[str]) -> Iterator[str]:
        option, is_bare = "", False
        for word in words:
            name, equals, value = word.partition("=")
            is_more = bool(option) and self.several[option](word)
            if is_bare and not is_more:
                yield option  # without a value of its kind: click says so
            if name in self.several:
                option, is_bare = name, not equals
                yield from self._each(option, value) if equals else ()
            elif is_more:
                is_bare = False
                yield from self._each(option, word)
            else:
                option, is_bare = "", False
                yield word
        if is_bare:
            yield option

    def _each(self, option: str, values: str) -> Iterator[str]:
        for value in values.split(","):
            yield from (option, value)
