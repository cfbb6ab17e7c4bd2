"""The option of a command that ranks places added after its run was trained."""

from pathlib import Path

import click

ranks_cold_places = click.option(
    "--places",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="New places to rank as well, though nobody has visited them: a table with place, lat, lon "
    "and perhaps name and category. For runs with shared_vectors=true.",
)
