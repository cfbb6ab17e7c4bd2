"""The methods by name, one line each, for the end of a verb's help.

In brackets the presets of a method that is learned, its default first.
"""

from collections.abc import Iterable

from castpoi.methods.registry import Method


def method_list(title: str, methods: Iterable[Method]) -> str:
    """A paragraph that click leaves as it is (`\\b`)."""
    listed = list(methods)
    width = max(len(method.name) for method in listed)
    lines = [f"  {method.name:<{width}}  {method.line}{_presets(method)}" for method in listed]
    return "\n".join(["\b", title, *lines])


def _presets(method: Method) -> str:
    return f" [{', '.join(method.presets)}]" if method.presets else ""
