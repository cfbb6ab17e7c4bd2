"""Options that commands share, and options built from the fields of a dataclass."""

import ast
import inspect
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, fields
from functools import wraps
from itertools import pairwise
from pathlib import Path
from textwrap import dedent
from types import NoneType
from typing import Annotated, Any, Final, Literal, get_args, get_origin

import click

from castpoi.checkins.private import PRIVATE_CATEGORIES
from castpoi.methods.registry import Method
from castpoi.serving.settings import ServiceSettings

Command = Callable[..., None]
Decorator = Callable[[Command], Command]

SEED: Final = click.IntRange(min=0, max=2**32 - 1)
"""Type of an option that is a seed."""
DEFAULT_SEED: Final = 42
FOLDER: Final = click.Path(path_type=Path)
"""Type of an argument or option that is a path."""


def parsed(metavar: str, parse: Callable[[str], object]) -> click.ParamType[Any]:
    """The type of an option that a function parses."""
    kind = click.types.FuncParamType(parse)
    kind.name = metavar
    return kind


def seed_option(help_text: str) -> Decorator:
    """`--seed`, with the same default for every command."""
    return click.option(
        "--seed", type=SEED, metavar="N", default=DEFAULT_SEED, show_default=True, help=help_text
    )


def seeds_option(help_text: str) -> Decorator:
    """`--seeds`, which takes several values in a command of class `SeveralValues`."""
    return click.option("--seeds", multiple=True, type=SEED, metavar="N...", help=help_text)


def is_numbers(word: str) -> bool:
    """Whether a word is a value of `--seeds`."""
    return word.replace(",", "").isdigit()


def out_option(help_text: str, *, replaces: str, required: bool = True, **more: Any) -> Decorator:
    """`--out` and `--overwrite`."""

    def decorate(command: Command) -> Command:
        out = click.option("--out", type=FOLDER, help=help_text, required=required, **more)
        return out(click.option("--overwrite", is_flag=True, help=f"Replace {replaces}.")(command))

    return decorate


split_option: Final = click.option(
    "--split",
    "part",
    type=click.Choice(["test", "validation"]),
    default="test",
    show_default=True,
    help="Split to predict; the method uses only check-ins before it.",
)

port_option: Final = click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=ServiceSettings.port,
    show_default=True,
    help="Port to listen on; 0 takes a free one.",
)

store_option: Final = click.option(
    "--store",
    metavar="URL",
    envvar="CASTPOI_STORE",
    help="The visit store: sqlite:///FILE or postgresql://USER@HOST/NAME; or CASTPOI_STORE in the "
    "environment, where other users cannot see a password.  [default for a RUN: "
    "RUN.visits.sqlite]",
)

cold_places_option: Final = click.option(
    "--places",
    metavar="FILE",
    type=FOLDER,
    help="New places to rank as well, without any visits: a table with place, lat, lon and "
    "optionally name and category. For runs with shared_vectors=true.",
)

closed_places_option: Final = click.option(
    "--closed",
    metavar="FILE",
    type=FOLDER,
    help="Places that are never recommended: a table with place, of closed places only or with "
    "date_closed or operating_status.",
)


def private_places_options(command: Command) -> Command:
    """`--private-category` and `--recommend-private`, passed on as `private_categories`."""

    @click.option(
        "--private-category",
        "private_categories",
        metavar="NAME",
        multiple=True,
        default=PRIVATE_CATEGORIES,
        show_default="homes in the published category trees",
        help="Category whose places are recommended only to people who have visited them; may be "
        "given several times.",
    )
    @click.option("--recommend-private", is_flag=True, help="Recommend these places to everybody.")
    @wraps(command)
    def wrapped(
        *arguments: Any, private_categories: tuple[str, ...], recommend_private: bool, **rest: Any
    ) -> None:
        private = () if recommend_private else private_categories
        command(*arguments, private_categories=private, **rest)

    return wrapped


def options_of(
    kind: type[Any],
    parameter: str,
    *,
    only: Iterable[str] = (),
    leave_out: Iterable[str] = (),
    names: Mapping[str, str] | None = None,
    types: Mapping[str, Any] | None = None,
) -> Decorator:
    """Give a command an option for each field of a dataclass, and the dataclass as `parameter`.

    A field gives the option its name, type and default; its docstring is the help text. `only` and
    `leave_out` select fields; `names` and `types` are those of options that differ from the field.
    """
    taken = set(only) or {field.name for field in fields(kind)} - set(leave_out)
    chosen = [field for field in fields(kind) if field.name in taken]
    named, typed, help_texts = names or {}, types or {}, field_docstrings(kind)

    def decorate(command: Command) -> Command:
        @wraps(command)
        def wrapped(*arguments: Any, **rest: Any) -> None:
            values = {field.name: rest.pop(field.name) for field in chosen}
            given = {name: value for name, value in values.items() if value is not None}
            command(*arguments, **rest, **{parameter: kind(**given)})

        for field in reversed(chosen):
            name = named.get(field.name, field.name.replace("_", "-"))
            settings = {"type": typed[field.name]} if field.name in typed else _type_of(field)
            switches = f"--{name}/--no-{name}" if field.default is True else f"--{name}"
            option = click.option(
                switches, field.name, help=help_texts.get(field.name), **_default_of(field),
                **settings,
            )  # fmt: skip
            wrapped = option(wrapped)
        return wrapped

    return decorate


def _default_of(field: Field[Any]) -> dict[str, Any]:
    has_default = field.default is not MISSING and field.default not in (None, False, ())
    return {"default": field.default, "show_default": True} if has_default else {}


def _type_of(field: Field[Any]) -> dict[str, Any]:
    """The arguments of `click.option` for the type of a field."""
    kind: Any = field.type
    if NoneType in get_args(kind):
        (kind,) = (each for each in get_args(kind) if each is not NoneType)
    if get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if get_origin(kind) is Literal:
        return {"type": click.Choice(list(get_args(kind)))}
    if get_origin(kind) is tuple:
        return {"multiple": True, "type": get_args(kind)[0]}
    return {"is_flag": True} if kind is bool else {"type": FOLDER if kind is Path else kind}


def field_docstrings(kind: type[Any]) -> Mapping[str, str]:
    """The docstring below each field of a dataclass and its bases, without backquotes."""
    return {
        name: " ".join(text.replace("`", "").split())
        for base in reversed(kind.__mro__[:-1])
        for name, text in _field_docstrings(base)
    }


def _field_docstrings(kind: type[Any]) -> Iterator[tuple[str, str]]:
    (definition,) = ast.parse(dedent(inspect.getsource(kind))).body
    for field, text in pairwise(getattr(definition, "body", ())):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=words)):
                yield name, str(words)


class SeveralValues(click.Command):
    """A command with `multiple` options that take several values, as `--seeds 42 43 44`.

    `several` has a test for each of these options: whether a word is one of its values. Values may
    also be separated by commas.
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
        """Repeat the option before each of its values, then parse."""
        return super().parse_args(ctx, list(self._spread(args)))

    def _spread(self, words: list[str]) -> Iterator[str]:
        rest = deque(words)
        while rest:
            name, equals, value = rest.popleft().partition("=")
            if name not in self.several:
                yield name + equals + value
                continue
            values = value.split(",") if equals else []
            while rest and self.several[name](rest[0]):
                values += rest.popleft().split(",")
            # click refuses an option without a value
            yield from (word for each in values for word in (name, each)) if values else (name,)


def method_list(title: str, methods: Iterable[Method]) -> str:
    """The methods with one line each and their [presets], as a paragraph of a help text."""
    listed = list(methods)
    width = max(len(method.name) for method in listed)
    lines = ["\b", title]  # click does not wrap a paragraph that begins with \b
    for method in listed:
        presets = f" [{', '.join(method.presets)}]" if method.presets else ""
        lines.append(f"  {method.name:<{width}}  {method.line}{presets}")
    return "\n".join(lines)
