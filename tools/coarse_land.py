"""Write src/castpoi/geo/land.npz from Natural Earth's land at 1:10,000,000 (public domain).

    python tools/coarse_land.py land-10m.json

The input is a file of the npm package world-atlas 2.0.2 (ISC licence), which has the same data as
TopoJSON. Coordinates are whole numbers of its grid, about 300 m; a ring is stored as its first
point and the steps from point to point.
"""

import json
import sys
from pathlib import Path

import numpy as np

OUT = Path(__file__).parents[1] / "src" / "castpoi" / "geo" / "land.npz"


def main(source: Path) -> None:
    """Write the outline."""
    atlas = json.loads(source.read_text(encoding="utf-8"))
    arcs = [np.cumsum(arc, axis=0) for arc in atlas["arcs"]]
    first, size, steps = [], [], []
    for shape in atlas["objects"]["land"]["geometries"]:
        for outer, *_ in shape["arcs"]:  # the only hole is the Caspian Sea
            parts = [arcs[n] if n >= 0 else arcs[~n][::-1] for n in outer]
            ring = np.concatenate([parts[0], *(part[1:] for part in parts[1:])])
            first.append(ring[0])
            size.append(len(ring))
            steps.append(np.diff(ring, axis=0))
    transform = atlas["transform"]
    np.savez_compressed(
        OUT,
        scale=transform["scale"],
        origin=transform["translate"],
        first=np.array(first, dtype=np.int32),
        size=np.array(size, dtype=np.int32),
        steps=np.concatenate(steps).T.astype(np.int32),
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
