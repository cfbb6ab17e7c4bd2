"""What the pages of this package share: templates, style sheets, and a policy for the browser."""

import base64
import hashlib
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from castpoi.reports.table import escape_markdown


def render(page: str, *, css: str, js: str = "", **values: object) -> str:
    """A page from a template, with its style and script inside.

    Text is escaped unless the template marks it as safe. The policy forbids the browser to load
    anything, and to run any other script.
    """
    digest = base64.b64encode(hashlib.sha256(js.encode()).digest()).decode()
    scripts = f"; script-src 'sha256-{digest}'" if js else ""
    policy = f"default-src 'none'; style-src 'unsafe-inline'{scripts}"
    return template(page, autoescape=True).render(css=css, js=js, policy=policy, **values)


def template(name: str, *, autoescape: bool) -> Template:
    """A template of this package; the filter `md` escapes Markdown."""
    environment = Environment(
        loader=PackageLoader("castpoi", "reports"),
        autoescape=autoescape,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["md"] = escape_markdown
    return environment.get_template(name)


def text_of(*names: str) -> str:
    """Files of this package one after another."""
    folder = files("castpoi.reports")
    return "".join(folder.joinpath(name).read_text(encoding="utf-8") for name in names)
