"""Addresses of the public data sets, and the published facts about their files.

Every fact has its public source in a comment. Without a published checksum a file is checked by
the CRC in its zip or gzip and by its number of rows.
"""

from dataclasses import dataclass
from typing import Final

from castpoi.core.errors import BadInput


@dataclass(frozen=True, kw_only=True)
class Source:
    """One public data set: its addresses and its published file."""

    dataset: str
    """The word on the command line."""
    urls: tuple[str, ...]
    """Addresses of the same file, tried in turn."""
    published: str
    """Name of the published file, a zip or a gzip."""
    members: tuple[str, ...] = ()
    """For a zip, the possible names of the check-ins in it; empty for a gzip."""
    size: int | None = None
    """Published size of the file in bytes, if known."""
    checksum: tuple[str, str] | None = None
    """Published digest of the file, if known: (name of the method in `hashlib`, digits)."""
    least_rows: int
    """Number of check-ins according to the publisher; the file has at least this many rows."""
    page: str
    """Description of the data set by its publisher."""
    citation: str
    """What to cite, and the terms of use."""

    @property
    def file(self) -> str:
        """Name of the file that `castpoi data prepare` reads."""
        return self.members[0].rpartition("/")[2] if self.members else self.published


_YANG: Final = (
    "For research; no licence is stated, the authors ask to be cited: D. Yang, D. Zhang, "
    "V. W. Zheng, Z. Yu. Modeling User Activity Preference by Leveraging User Spatial Temporal "
    "Characteristics in LBSNs. IEEE Transactions on Systems, Man, and Cybernetics: Systems "
    "45(1), 129-142, 2015."
)
_CHO: Final = (
    "For research; no licence is stated, cite: E. Cho, S. A. Myers, J. Leskovec. Friendship and "
    "Mobility: User Movement in Location-Based Social Networks. KDD 2011."
)


def _tsmc2014(dataset: str, member: str, least_rows: int) -> Source:
    hosts = ("www-public.imtbs-tsp.eu", "www-public.it-sudparis.eu", "www-public.tem-tsp.eu")
    return Source(
        dataset=dataset,
        urls=tuple(f"http://{host}/~zhang_da/pub/dataset_tsmc2014.zip" for host in hosts),
        published="dataset_tsmc2014.zip",
        # in a folder of the zip, where public loaders open them
        members=(f"dataset_tsmc2014/{member}", member),
        # stated by scikit-mobility, skmob/data/datasets/foursquare_nyc/foursquare_nyc.json
        checksum=("sha256", "cbe3fdab373d24b09b5fc53509c8958c77ff72b6c1a68589ce337d4f9a80235b"),
        least_rows=least_rows,
        page="https://sites.google.com/site/yangdingqi/home/foursquare-dataset",
        citation=_YANG,
    )


def _snap(
    dataset: str,
    *,
    least_rows: int,
    size: int | None = None,
    checksum: tuple[str, str] | None = None,
) -> Source:
    published = f"loc-{dataset}_totalCheckins.txt.gz"
    return Source(
        dataset=dataset,
        urls=(f"https://snap.stanford.edu/data/{published}",),
        published=published,
        size=size,
        checksum=checksum,
        least_rows=least_rows,
        page=f"https://snap.stanford.edu/data/loc-{dataset}.html",
        citation=_CHO,
    )


SOURCES: Final[dict[str, Source]] = {
    source.dataset: source
    for source in (
        # rows: dataset_TSMC2014_readme.txt of the authors
        _tsmc2014("nyc", "dataset_TSMC2014_NYC.txt", 227_428),
        _tsmc2014("tky", "dataset_TSMC2014_TKY.txt", 573_703),
        _snap(
            "gowalla",
            # the page of SNAP; public loaders count 6,442,892 rows in the file
            least_rows=6_442_890,
            # size and md5: sisinflab/DataRec, datarec/datasets/gowalla/gowalla_checkins.py
            size=105_470_044,
            checksum=("md5", "8ebd5ed2dd376d8982987c49429cb9f9"),
        ),
        # the page of SNAP; the file holds more rows, some of them without a place.
        # No size and no checksum of it is published as far as we know.
        _snap("brightkite", least_rows=4_491_143),
    )
}
"""The public data sets by the word on the command line."""


def source_of(dataset: str) -> Source:
    """The public data set of this name."""
    if dataset not in SOURCES:
        raise BadInput(
            f"no public data set is called {dataset!r}; castpoi can fetch {', '.join(SOURCES)}"
        )
    return SOURCES[dataset]
