"""Whether what is installed here is what constraints.txt says, without asking anybody.

An audit for known holes asks an advisory service, for which a network is needed (`make audit`). It
is worth something only if what runs is what was audited; that can be checked offline, and `make
lint` does: every distribution installed has a pin and its version, and every requirement of
pyproject.toml is pinned to a version that it allows.
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
BROUGHT_BY_VENV: Final = {"pip", "setuptools", "wheel"}
"""What Python puts into an environment by itself; castpoi runs without."""


def read_pins(text: str) -> dict[str, Version]:
    """Name -> version of every line `name==version`; anything else in the file is an error."""
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
    """What castpoi and its extras ask for by name, themselves left out."""
    project = tomllib.loads(pyproject)["project"]
    asked = [project["dependencies"], *project["optional-dependencies"].values()]
    found = (Requirement(text) for texts in asked for text in texts)
    return [each for each in found if canonicalize_name(each.name) != OURS]


def problems(
    installed: Mapping[str, Version], pins: Mapping[str, Version], asked: Iterable[Requirement]
) -> list[str]:
    """What does not fit together, a sentence each."""
    told = []
    for name, version in sorted(installed.items()):
        if name in BROUGHT_BY_VENV or name == OURS:
            continue
        if name not in pins:
            told.append(f"{name} {version} is installed and has no pin; add it or uninstall it")
        elif Version(version.public) != pins[name]:  # 2.13.0+cpu is a build of 2.13.0
            told.append(f"{name} {version} is installed and {pins[name]} is pinned; install that")
    for requirement in asked:
        name = canonicalize_name(requirement.name)
        if name not in pins:
            told.append(f"pyproject.toml asks for {requirement}, which has no pin; add it")
        elif pins[name] not in requirement.specifier:
            told.append(f"pyproject.toml asks for {requirement} and {pins[name]} is pinned")
    return told


def main() -> None:
    """Tell what does not fit and end with 1, or say that all is well."""
    pins = read_pins((ROOT / "constraints.txt").read_text(encoding="utf-8"))
    asked = requirements_of((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    installed: dict[str, Version] = {
        canonicalize_name(each.metadata["Name"]): Version(each.version) for each in distributions()
    }
    told = problems(installed, pins, asked)
    if told:
        raise SystemExit("\n".join([*told, f"{len(told)} differences from constraints.txt"]))
    sys.stdout.write(f"{len(installed)} distributions are as constraints.txt pins them\n")


if __name__ == "__main__":
    main()
