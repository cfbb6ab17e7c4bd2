"""One part of a suite file, read key by key; what is wrong is told with file, part and key."""

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from castpoi.core.errors import BadInput

_WORDS: Final = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "a table",
}


class Section:
    """A table of a TOML file whose keys are all known."""

    def __init__(
        self, file: Path, content: Mapping[str, Any], *, keys: Sequence[str], name: str = ""
    ) -> None:
        self.file = file
        self.name = name
        self._content = content
        unknown = next((key for key in content if key not in keys), None)
        if unknown is not None:
            close = difflib.get_close_matches(unknown, keys, n=1)
            guess = f"did you mean '{close[0]}'? " if close else ""
            raise BadInput(
                f"{self.at(unknown)} is not a key of a suite; {guess}the keys here are "
                f"{', '.join(keys)}"
            )

    def __contains__(self, key: str) -> bool:
        return key in self._content

    def at(self, key: str) -> str:
        """Where a key stands, as `suite.toml: rows.castpoi.method`."""
        return f"{self.file}: {self.name}{'.' if self.name else ''}{key}"

    def has_text(self, key: str) -> bool:
        """Whether the value of a key is a text, where it might also be a list."""
        return isinstance(self._content.get(key), str)

    def text(self, key: str) -> str:
        """A text that is not empty."""
        value = self._of_kind(key, str, None)
        if not value.strip():
            raise BadInput(f"{self.at(key)} is empty; give {_WORDS[str]}")
        return str(value)

    def choice(self, key: str, choices: Sequence[str]) -> str:
        """One of a few words."""
        value = self.text(key)
        if value not in choices:
            raise BadInput(f"{self.at(key)} is {value!r}; choose {' or '.join(choices)}")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts; empty where the key is absent."""
        return tuple(self._list(key, str))

    def whole_numbers(self, key: str, *, most: int) -> tuple[int, ...]:
        """A list of whole numbers from 0 to `most`; empty where the key is absent."""
        numbers = self._list(key, int)
        wrong = next((number for number in numbers if not 0 <= number <= most), None)
        if wrong is not None:
            raise BadInput(f"{self.at(key)} holds {wrong}; give numbers from 0 to {most}")
        return tuple(numbers)

    def settings(self, key: str) -> dict[str, str]:
        """Values by name, as a person would write them on the command line."""
        found = self._of_kind(key, dict, {})
        return {name: self._as_word(f"{key}.{name}", value) for name, value in found.items()}

    def sections(self, key: str, *, keys: Sequence[str]) -> dict[str, "Section"]:
        """The tables inside a table, by name."""
        found = {}
        for name, content in self._of_kind(key, dict, {}).items():
            inside = f"{key}.{name}"
            if not isinstance(content, dict):
                raise BadInput(f"{self.at(inside)} is {_kind(content)}; give {_WORDS[dict]}")
            found[name] = Section(self.file, content, keys=keys, name=inside)
        return found

    def _of_kind(self, key: str, kind: type, default: Any) -> Any:
        value = self._content.get(key, default)
        if value is None:
            raise BadInput(f"{self.at(key)} is missing; give {_WORDS[kind]}")
        if not _is(value, kind):
            raise BadInput(f"{self.at(key)} is {_kind(value)}; give {_WORDS[kind]}")
        return value

    def _list(self, key: str, kind: type) -> list[Any]:
        values: list[Any] = self._of_kind(key, list, [])
        wrong = next((value for value in values if not _is(value, kind)), None)
        if wrong is not None:
            raise BadInput(f"{self.at(key)} holds {_kind(wrong)}; every entry is {_WORDS[kind]}")
        twice = next((value for value in values if values.count(value) > 1), None)
        if twice is not None:
            raise BadInput(f"{self.at(key)} holds {twice!r} twice; leave one out")
        return values

    def _as_word(self, key: str, value: object) -> str:
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, list):
            return ",".join(self._as_word(key, each) for each in value)
        if isinstance(value, str | int | float):
            return str(value)
        raise BadInput(f"{self.at(key)} is {_kind(value)}; give a text, a number, or true or false")


def _is(value: object, kind: type) -> bool:
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def _kind(value: object) -> str:
    return _WORDS.get(type(value), f"a {type(value).__name__}")
