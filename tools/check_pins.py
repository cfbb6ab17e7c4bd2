"""Check offline that the installed versions are the pinned ones; `make lint` runs it.

`make audit` looks the pins up in a database of known vulnerabilities, which needs a network. Its
verdict holds only if the pinned versions are the installed ones. So each installed distribution
must have a pin with its version, and each requirement of pyproject.toml a pin that it allows.
"""

import sys
import tomllib
from collections.abc import Iterable, Mapping
from importlib.metadata import distributions
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT: Final = Path(__file__).resolve().parent.parent
OURS: Final = "castpoi"
INSTALLED_BY_VENV: Final = {"pip", "setuptools", "wheel"}
"""Packages that Python puts into a new environment; castpoi does not need them."""


def read_pins(text: str) -> dict[str, Version]:
    """Name -> version of each line `name==version`; any other line is an error."""
    pins: dict[str, Version] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        pin = line.partition("#")[0].strip()
        if not pin:
            continue
        name, equals, version = pin.partition("==")
        if not equals:
            raise SystemExit(
                f"constraints.txt, line {number}: '{pin}' is not of the form name==1.2.3"
            )
        pins[canonicalize_name(name.strip())] = Version(version.strip())
    return pins


def requirements_of(pyproject: str) -> list[Requirement]:
    """Requirements of castpoi and of its extras, without castpoi itself."""
    project = tomllib.loads(pyproject)["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    found = (Requirement(text) for group in groups for text in group)
    return [each for each in found if canonicalize_name(each.name) != OURS]


def problems(
    installed: Mapping[str, Version],
    pins: Mapping[str, Version],
    requirements: Iterable[Requirement],
) -> list[str]:
    """One sentence for each difference between the three."""
    found = []
    for name, version in sorted(installed.items()):
        if name in INSTALLED_BY_VENV or name == OURS:
            continue
        if name not in pins:
            found.append(f"{name} {version} is installed and has no pin; add it or uninstall it")
        elif Version(version.public) != pins[name]:  # 2.13.0+cpu is a build of 2.13.0
            found.append(f"{name} {version} is installed and {pins[name]} is pinned; install that")
    for requirement in requirements:
        name = canonicalize_name(requirement.name)
        if name not in pins:
            found.append(f"pyproject.toml requires {requirement}, which has no pin; add it")
        elif pins[name] not in requirement.specifier:
            found.append(f"pyproject.toml requires {requirement} and {pins[name]} is pinned")
    return found


def main() -> None:
    """Print the differences and exit with 1, or print that there are none."""
    pins = read_pins((ROOT / "constraints.txt").read_text(encoding="utf-8"))
    requirements = requirements_of((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    installed: dict[str, Version] = {
        canonicalize_name(each.metadata["Name"]): Version(each.version) for each in distributions()
    }
    found = problems(installed, pins, requirements)
    if found:
        raise SystemExit("\n".join([*found, f"{len(found)} differences from constraints.txt"]))
    sys.stdout.write(f"{len(installed)} distributions match constraints.txt\n")


if __name__ == "__main__":
    main()
