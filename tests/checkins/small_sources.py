"""Small data sets in the layouts of the public ones, and what would be published of them."""

import gzip
import hashlib
import io
import zipfile
from dataclasses import replace

import numpy as np

from castpoi.checkins.fetch import DATASETS, Dataset

ROWS = 2000


def gowalla_text(seed: int = 0) -> bytes:
    """Rows as SNAP publishes them, of random digits so that they do not compress away."""
    rng = np.random.default_rng(seed)
    lat, lon = rng.uniform(-80, 80, ROWS), rng.uniform(-180, 180, ROWS)
    return "".join(
        f"{row % 40}\t2010-10-19T23:55:27Z\t{lat[row]:.10f}\t{lon[row]:.10f}\t{row}\n"
        for row in range(ROWS)
    ).encode()


GOWALLA = gzip.compress(gowalla_text(), mtime=0)
NYC_TEXT = "".join(
    f"{row}\tplace{row}\tcategory\tCafé\t40.7\t-74.0\t-240\tTue Apr 03 18:00:09 +0000 2012\n"
    for row in range(ROWS)
).encode("latin-1")


def zipped(*members: tuple[str, bytes]) -> bytes:
    """A zip with these members."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as folder:
        for name, text in members:
            folder.writestr(name, text)
    return content.getvalue()


TSMC2014 = zipped(
    ("dataset_tsmc2014/dataset_TSMC2014_readme.txt", b"read me\n"),
    ("dataset_tsmc2014/dataset_TSMC2014_NYC.txt", NYC_TEXT),
    ("dataset_tsmc2014/dataset_TSMC2014_TKY.txt", NYC_TEXT * 2),
)


def small(dataset: str, content: bytes, *urls: str, checksum: str | None = "sha256") -> Dataset:
    """The facts of a public data set, as if `content` were its published file."""
    digest = hashlib.new(checksum, content).hexdigest() if checksum else ""
    return replace(
        DATASETS[dataset],
        urls=urls or DATASETS[dataset].urls,
        size=0,
        checksum=(checksum, digest) if checksum else (),
        min_rows=ROWS,
    )
