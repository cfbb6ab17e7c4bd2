"""The terms of the score beyond the base score, in their order.

A new term is a module here, a line in `CHEAP_TERMS`, and a name in `ModelConfig.terms`.
"""

from collections.abc import Mapping
from typing import Final

from castpoi.model.terms.base import Term
from castpoi.model.terms.distance import DistanceGate
from castpoi.model.terms.revisit import RevisitGate

CHEAP_TERMS: Final[Mapping[str, type[Term]]] = {
    "revisit": RevisitGate,
    "distance": DistanceGate,
}
