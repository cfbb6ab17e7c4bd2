"""Pages of the docs site that are made from code: a hook of mkdocs (`make docs`).

    index.md              README.md, with its links
    examples/*.md         the notebooks of examples/, with their outputs
    decisions/README.md   the titles of all decisions
    reference/python.md   `castpoi.__all__`, by mkdocstrings
    reference/cli.md      `--help` of every verb, from click
    reference/http.md     the routes, from OpenAPI
    reference/settings.md every setting of presets and commands, from the config classes

Links to files outside docs/ become their names, since the site does not contain them.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path, PurePosixPath
from typing import Any

import click
from fastapi import FastAPI
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import castpoi
from castpoi.checkins.cleaning import Recipe
from castpoi.checkins.prepare import Preparation
from castpoi.checkins.synthetic.plan import SynthesisConfig
from castpoi.cli.main import castpoi as command_line
from castpoi.cli.options import field_docstrings
from castpoi.methods.registry import METHODS
from castpoi.serving import place_routes, routes
from castpoi.serving.settings import Limits, ServiceSettings
from castpoi.training.train import configs_for

ROOT = Path(__file__).parent.parent
_LINK = re.compile(r"\[([^\]]+)\]\(([^)#:\s]+)(#[^)]*)?\)")
_SHIM = '<script src="https://unpkg.com/iframe-worker/shim"></script>'
_OF_COMMANDS = {
    "`castpoi data prepare`": Preparation,
    "Cleaning steps of `castpoi data prepare`": Recipe,
    "`castpoi data synthesize`": SynthesisConfig,
    "`castpoi serve`": ServiceSettings,
    "Limits of `castpoi serve`": Limits,
}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add every decision to the navigation."""
    decisions = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    pages = ["decisions/README.md", *(f"decisions/{each.name}" for each in decisions)]
    assert config.nav is not None
    config.nav.append({"Decisions": pages})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    for name, text in pages().items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Replace links that leave docs/ by the names of their files, and link folders to an index."""
    here = PurePosixPath(page.file.src_uri).parent

    def rewritten(link: re.Match[str]) -> str:
        text, target, anchor = link.group(1), link.group(2), link.group(3) or ""
        path = (ROOT / "docs" / here / target).resolve()
        if path.suffix == ".ipynb":
            return f"[{text}]({'' if str(here) == 'examples' else 'examples/'}{path.stem}.md)"
        if not path.is_relative_to(ROOT / "docs"):
            return text if text.strip("`") == target else f"{text} (`{_inside(path)}`)"
        if path.is_dir():
            return f"[{text}]({target.rstrip('/')}/README.md{anchor})"
        return link.group(0)

    return _LINK.sub(rewritten, markdown)


def on_post_page(output: str, **_: Any) -> str:
    """Remove the only script from elsewhere; without it, search needs a web server."""
    return output.replace(_SHIM, "")


on_post_template = on_post_page  # the page of an unknown address is a template


def pages() -> dict[str, str]:
    """The generated pages by name."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8").replace("](docs/", "](")
    notebooks = sorted((ROOT / "examples").glob("*.ipynb"))
    return {
        "index.md": readme,
        **{f"examples/{each.stem}.md": _notebook(each) for each in notebooks},
        "decisions/README.md": _decisions(),
        "reference/python.md": _python(),
        "reference/cli.md": _commands(),
        "reference/http.md": _routes(),
        "reference/settings.md": _settings(),
    }


def _notebook(path: Path) -> str:
    """A notebook as a page: its texts, its code and what the code showed."""
    lines: list[str] = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            lines += [source, ""]
            continue
        lines += ["```python", source, "```", ""]
        for output in cell["outputs"]:
            data = output.get("data", {"text/plain": output.get("text", "")})
            if "text/html" in data:
                lines += [f"<div>{''.join(data['text/html'])}</div>", ""]
            elif text := "".join(data["text/plain"]).strip():
                lines += ["```text", text, "```", ""]
    return "\n".join(lines)


def _inside(path: Path) -> str:
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name


def _decisions() -> str:
    lines = ["# Decisions", "", "Why castpoi is as it is, one page per choice.", ""]
    for path in sorted((ROOT / "docs" / "decisions").glob("*.md")):
        title = path.read_text(encoding="utf-8").splitlines()[0].lstrip("# ")
        lines.append(f"- [{title}]({path.name})")
    return "\n".join(lines)


def _python() -> str:
    names = [name for name in castpoi.__all__ if name != "__version__"]
    functions = [name for name in names if name.islower()]
    classes = [name for name in names if not name.islower()]
    lines = ["# Python", "", "All public names of `import castpoi`.", ""]
    for name in (*functions, *classes):
        home = getattr(castpoi, name).__module__
        lines += [f"::: {home}.{name}", ""]
    return "\n".join(lines)


def _commands() -> str:
    lines = ["# Commands", "", "The `--help` of every command.", ""]
    for name, command in _verbs(command_line, "castpoi"):
        text = command.get_help(click.Context(command, info_name=name, max_content_width=96))
        lines += [f"## {name}", "", "```text", text, "```", ""]
    return "\n".join(lines)


def _verbs(group: click.Group, name: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group, info_name=name)
    for verb in group.list_commands(context):
        command = group.get_command(context, verb)
        if isinstance(command, click.Group):
            yield from _verbs(command, f"{name} {verb}")
        elif command is not None:
            yield f"{name} {verb}", command


def _routes() -> str:
    app = FastAPI()
    app.include_router(routes.router)
    app.include_router(place_routes.router)
    lines = [
        "# HTTP",
        "",
        "The routes of `castpoi serve`; [the guide](../api.md) explains them.",
        "",
    ]
    schema = app.openapi()
    for path, methods in schema["paths"].items():
        for method, route in methods.items():
            lines += [f"## {method.upper()} {path}", "", route.get("description", ""), ""]
            lines += _table(
                ("parameter", "in", "meaning"),
                [
                    (f"`{each['name']}`", each["in"], each.get("description", ""))
                    for each in route.get("parameters", ())
                ],
            )
            if "requestBody" in route:
                body = route["requestBody"]["content"]["application/json"]["schema"]
                lines += _table(("field of the body", "type", "meaning"), _fields(schema, body))
            responses = route["responses"].items()
            lines += _table(
                ("status", "meaning"), [(code, each["description"]) for code, each in responses]
            )
    return "\n".join(lines)


def _fields(schema: dict[str, Any], body: dict[str, Any]) -> list[tuple[str, ...]]:
    """Name, type and meaning of each field of a body."""
    kinds = [each.get("items", each) for each in body.get("anyOf", [body])]
    one = next((each for each in kinds if "$ref" in each), None)
    if one is None:
        return []
    found = schema["components"]["schemas"][one["$ref"].rsplit("/", 1)[-1]]
    return [
        (f"`{name}`", _type(each), each.get("description", ""))
        for name, each in found["properties"].items()
    ]


def _type(field: dict[str, Any]) -> str:
    if "anyOf" in field:
        return " or ".join(_type(each) for each in field["anyOf"])
    if field.get("type") == "array":
        return f"list of {_type(field.get('items', {}))}"
    return str(field.get("type", field.get("$ref", "any")).rsplit("/", 1)[-1])


def _settings() -> str:
    lines = [
        "# Settings",
        "",
        "Settings of methods are changed by `--set NAME=VALUE`; presets of a method change some of "
        "the defaults below (`castpoi methods NAME --preset PRESET`).",
        "",
    ]
    for title, kind in {**_configs_of_methods(), **_OF_COMMANDS}.items():
        meanings = field_docstrings(kind)
        rows = [
            (f"`{each.name}`", f"`{each.default}`", meanings.get(each.name, ""))
            for each in fields(kind)
        ]
        lines += [f"## {title}", "", *_table(("setting", "default", "meaning"), rows)]
    return "\n".join(lines)


def _configs_of_methods() -> dict[str, type[Any]]:
    """The settings of models and trainings, titled by the methods that have them."""
    found: dict[tuple[str, type[Any]], list[str]] = {}
    for method in METHODS:
        if method.default_preset is not None and method.is_ours:
            configs = configs_for(method, method.default_preset, {})
            for part, config in zip(("Model", "Training"), configs, strict=True):
                found.setdefault((part, type(config)), []).append(f"`{method.name}`")
    parts = sorted(found.items(), key=lambda each: each[0][0])
    return {f"{part}: {', '.join(names)}": kind for (part, kind), names in parts if fields(kind)}


def _table(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    if not rows:
        return []
    cells = [columns, ("---",) * len(columns), *rows]
    escaped = ([each.replace("|", "\\|").replace("\n", " ") for each in row] for row in cells)
    return [*(f"| {' | '.join(row)} |" for row in escaped), ""]
