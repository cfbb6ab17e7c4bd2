"""`castpoi data fetch`: a public data set into a folder."""

import shlex
from pathlib import Path

import click

from castpoi.checkins.fetch import Fetched
from castpoi.checkins.fetch import fetch as fetch_dataset
from castpoi.checkins.fetch_sources import SOURCES
from castpoi.cli.console import Console, speaks


@click.command()
@click.argument("dataset", type=click.Choice(list(SOURCES)))
@click.option(
    "--out",
    "folder",
    type=click.Path(path_type=Path),
    default=Path("data"),
    show_default=True,
    metavar="FOLDER",
    help="Where the file goes.",
)
@click.option(
    "--from",
    "mirror",
    metavar="URL",
    help="Another address of the very same published file (http or https).",
)
@speaks
def fetch(console: Console, dataset: str, folder: Path, mirror: str | None) -> None:
    """Download a public data set, resume it where it broke off, and check it.

    nyc and tky are the Foursquare check-ins of Yang et al. (2015), gowalla and brightkite those
    of Cho et al. (2011). Beside the file stands FILE.source.json: where it comes from, its
    SHA-256, and what to cite. A file that is already there is checked and left alone.
    """
    with console.progress() as progress:
        fetched = fetch_dataset(dataset, folder, mirror=mirror, progress=progress)
    _tell(console, fetched)
    console.result(
        {
            "dataset": fetched.dataset,
            "file": str(fetched.file),
            "bytes": fetched.bytes,
            "rows": fetched.rows,
            "seconds": round(fetched.seconds, 3),
            "downloaded": fetched.downloaded,
            "resumed": fetched.resumed,
            "verified": True,  # a file that fails a known check is an error
            "checksum": fetched.checksum,
        }
    )


def _tell(console: Console, fetched: Fetched) -> None:
    done = "is fetched" if fetched.downloaded else "was already there"
    resumed = ", continued from a part" if fetched.resumed else ""
    console.say(
        f"{fetched.file} {done} and checked: {fetched.rows:,} rows, {fetched.bytes:,} bytes"
        f"{resumed} ({fetched.checksum})."
    )
    file, city = shlex.quote(str(fetched.file)), shlex.quote(fetched.dataset)
    console.say(f"Next: castpoi data prepare {file} --out {city}")
