"""Options that commands share, and options built from the fields of a dataclass."""

import ast
import inspect
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from functools import wraps
from itertools import pairwise
from pathlib import Path
from textwrap import dedent
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, get_args, get_origin

import click

if TYPE_CHECKING:
    from castpoi.methods.registry import Method

Command = Callable[..., None]
Decorator = Callable[[Command], Command]

SEED: Final = click.IntRange(min=0, max=2**32 - 1)
Seed = Annotated[int, SEED, "N"]  # type of an option that is a seed
Seeds = Annotated[tuple[int, ...], SEED, "N..."]
"""The same for several, in a command of class `SeveralValues`."""
DEFAULT_SEED: Final = 42
PORT: Final = click.IntRange(0, 65535)
FOLDER: Final = click.Path(path_type=Path)  # type of an argument or option that is a path


def parsed(metavar: str, parse: Callable[[str], object]) -> click.ParamType[Any]:
    """The type of an option that a function parses."""
    kind = click.types.FuncParamType(parse)
    kind.name = metavar
    return kind


def is_numbers(word: str) -> bool:
    """Whether a word is a value of `--seeds`."""
    return word.replace(",", "").isdigit()


def out_option(help_text: str, *, replaces: str, required: bool = True, **more: Any) -> Decorator:
    """`--out` and `--overwrite`."""

    def decorate(command: Command) -> Command:
        out = click.option("--out", type=FOLDER, help=help_text, required=required, **more)
        return out(click.option("--overwrite", is_flag=True, help=f"Replace {replaces}.")(command))

    return decorate


def store_option(default: str = "", *, required: bool = False) -> Decorator:
    """`--store`; `default` is that of the command, in words."""
    text = (
        "The visit store: sqlite:///FILE or postgresql://USER@HOST/NAME; or CASTPOI_STORE in the "
        "environment, where other users cannot see a password."
    )
    text += f"  [default: {default}]" if default else ""
    return click.option(
        "--store", metavar="URL", envvar="CASTPOI_STORE", required=required, help=text
    )


def options_of(
    kind: type[Any],
    parameter: str,
    *,
    only: Iterable[str] = (),
    leave_out: Iterable[str] = (),
    names: Mapping[str, str] | None = None,
    types: Mapping[str, Any] | None = None,
    make: Callable[..., Any] | None = None,
) -> Decorator:
    """Give a command an option for each field of a dataclass, and the dataclass as `parameter`.

    A field gives the option its name, type and default; its docstring is the help text. In
    `Annotated`, a click type replaces the type, and a text is the metavar. `only` and `leave_out`
    select fields; `names` and `types` are those of options that differ from the field; `make`
    receives the values that are given, instead of the dataclass.
    """
    taken = set(only) or {field.name for field in fields(kind)} - set(leave_out)
    chosen = [field for field in fields(kind) if field.name in taken]
    named, typed, help_texts = names or {}, types or {}, field_docstrings(kind)

    def decorate(command: Command) -> Command:
        @wraps(command)
        def wrapped(*arguments: Any, **rest: Any) -> None:
            values = {field.name: rest.pop(field.name) for field in chosen}
            given = {name: value for name, value in values.items() if value not in (None, ())}
            command(*arguments, **rest, **{parameter: (make or kind)(**given)})

        for field in reversed(chosen):
            name = named.get(field.name, field.name.replace("_", "-"))
            switches = f"--{name}/--no-{name}" if field.default is True else f"--{name}"
            text = help_texts.get(field.name, "").replace(" [default", "  [default")
            option = click.option(
                switches, field.name, help=text or None, **_default_of(field),
                **_type_of(field, typed.get(field.name)),
            )  # fmt: skip
            wrapped = option(wrapped)
        return wrapped

    return decorate


def _default_of(field: Field[Any]) -> dict[str, Any]:
    if field.default is field.default_factory is MISSING:
        return {"required": True}
    has_default = field.default is not MISSING and field.default not in (None, False, ())
    return {"default": field.default, "show_default": True} if has_default else {}


def _type_of(field: Field[Any], given: Any) -> dict[str, Any]:
    """The arguments of `click.option` for the type of a field; `given` is a type or a metavar."""
    if given is not None and not isinstance(given, str):
        return {"type": given}
    kind: Any = field.type
    if NoneType in get_args(kind):
        (kind,) = (each for each in get_args(kind) if each is not NoneType)
    more: dict[str, Any] = {} if given is None else {"metavar": given}
    if get_origin(kind) is Annotated:
        kind, *details = get_args(kind)
        known = [each for each in details if isinstance(each, str | click.ParamType)]
        more = {"metavar" if isinstance(each, str) else "type": each for each in known}
    if kind is bool:
        return {"is_flag": True}
    if get_origin(kind) is Literal:
        return {"type": click.Choice(list(get_args(kind))), **more}
    is_multiple = get_origin(kind) in (tuple, Sequence)
    kind = get_args(kind)[0] if is_multiple else kind
    return {"type": FOLDER if kind is Path else kind, "multiple": is_multiple, **more}


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


@dataclass(frozen=True, kw_only=True)
class _Loading:
    """The options that are arguments of `castpoi.load`."""

    city: Path | None = None
    """The run's city, if it has moved."""
    places: Annotated[Path, "FILE"] | None = None
    """New places to rank as well, without any visits: a table with place, lat, lon and optionally
    name and category."""
    closed: Annotated[Path, "FILE"] | None = None
    """Places that are never recommended: a table with place, of closed places only or with
    date_closed or operating_status."""
    private_category: Annotated[tuple[str, ...], "NAME"] = ()
    """Category whose places are recommended only to people who have visited them; may be given
    several times.  [default: homes in the published category trees]"""
    recommend_private: bool = False
    """Recommend these places to everybody."""


def loading_options(*, leave_out: Iterable[str] = ()) -> Decorator:
    """The options of a run and its places; the arguments of `castpoi.load` as `loading`."""

    def arguments(
        private_category: Sequence[str] | None = None, recommend_private: bool = False, **rest: Any
    ) -> dict[str, Any]:
        return {**rest, "private_categories": () if recommend_private else private_category}

    return options_of(_Loading, "loading", leave_out=leave_out, make=arguments)


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


def method_list(title: str, methods: "Iterable[Method]") -> str:
    """The methods with one line each and their [presets], as a paragraph of a help text."""
    listed = list(methods)
    width = max(len(method.name) for method in listed)
    lines = ["\b", title]  # click does not wrap a paragraph that begins with \b
    for method in listed:
        presets = f" [{', '.join(method.presets)}]" if method.presets else ""
        lines.append(f"  {method.name:<{width}}  {method.line}{presets}")
    return "\n".join(lines)
