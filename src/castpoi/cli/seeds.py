"""Seeds on the command line: every verb takes the same ones."""

from typing import Final

import click

from castpoi.experiments.suite import LARGEST_SEED

SEED: Final = click.IntRange(min=0, max=LARGEST_SEED)
"""The type of an option that is a seed."""
