"""Where the public data sets are, and what is publicly known of their files.

Only what somebody states in public stands here, with who states it. Where no checksum is
published the field is None: the file is then checked by its own integrity (the CRC of the zip or
gzip) and by its number of rows.
"""

from dataclasses import dataclass
from typing import Final

from castpoi.core.errors import BadInput


@dataclass(frozen=True, kw_only=True)
class Checksum:
    """A published digest of a whole file."""

    method: str
    """Name of the digest as `hashlib` knows it: sha256 or md5."""
    digest: str
    """Lower-case hexadecimal digits."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """One public data set: its addresses, its published file and how to tell that it is whole."""

    dataset: str
    """The word on the command line."""
    urls: tuple[str, ...]
    """Addresses of the same file, tried in turn."""
    published: str
    """Name of the file as it is published, a zip or a gzip."""
    members: tuple[str, ...] = ()
    """For a zip, the names under which the check-ins may stand in it; empty for a gzip."""
    size: int | None = None
    """Published size of the file in bytes, where known."""
    checksum: Checksum | None = None
    """Published digest of the file, where known."""
    least_rows: int
    """The check-ins that the publisher counts; the file holds at least so many rows."""
    page: str
    """The page where the publisher describes the data set."""
    citation: str
    """What to cite, and on what terms."""

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
        # the texts stand in a folder of the zip (loaders in public use open them there)
        members=(f"dataset_tsmc2014/{member}", member),
        # stated by scikit-mobility, skmob/data/datasets/foursquare_nyc/foursquare_nyc.json
        checksum=Checksum(
            method="sha256",
            digest="cbe3fdab373d24b09b5fc53509c8958c77ff72b6c1a68589ce337d4f9a80235b",
        ),
        least_rows=least_rows,
        page="https://sites.google.com/site/yangdingqi/home/foursquare-dataset",
        citation=_YANG,
    )


def _snap(
    dataset: str, *, least_rows: int, size: int | None = None, checksum: Checksum | None = None
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
            # the page of SNAP; loaders in public use count 6,442,892 rows in the file
            least_rows=6_442_890,
            # size and md5: sisinflab/DataRec, datarec/datasets/gowalla/gowalla_checkins.py
            size=105_470_044,
            checksum=Checksum(method="md5", digest="8ebd5ed2dd376d8982987c49429cb9f9"),
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
