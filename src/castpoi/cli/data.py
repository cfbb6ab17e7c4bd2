"""`castpoi data`: from a raw table to a city one can trust."""

import click

from castpoi.cli.lazy import LazyGroup

VERBS = {
    "prepare": ("castpoi.cli.data_prepare", "Read, clean, localise and split check-ins: a CITY."),
    "describe": ("castpoi.cli.data_describe", "Counts, rhythm and distances of a city."),
    "audit": ("castpoi.cli.data_audit", "Check a city for leakage, wrong clocks and oddities."),
    "synthesize": ("castpoi.cli.data_synthesize", "Make the check-ins of a synthetic city."),
    "fetch": ("castpoi.cli.data_fetch", "Download a public data set."),
}


@click.group(cls=LazyGroup, verbs=VERBS)
def data() -> None:
    """From a raw table of check-ins to a city one can trust."""
