"""Requests of the whole OpenAPI description to a running service: never a 5xx."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    response_schema_conformance,
    status_code_conformance,
)
from tests.serving.live import Live, living, service_of

from castpoi.recommend.recommender import load
from castpoi.serving.app import create_app
from chaos.attack import Arena
from chaos.outcome import Outcome

EXAMPLES: Final = 30
"""Requests per operation: that many valid ones, and that many invalid ones."""


def attack(arena: Arena) -> Iterator[Outcome]:
    """Send requests to every operation of the description."""
    outcome = Outcome(
        attack="requests of the whole OpenAPI, valid and invalid: no 5xx, as described"
    )
    with living(service_of(load(arena.inputs.run), arena.folder)) as live:
        description = schemathesis.openapi.from_dict(create_app(live.service).openapi())
        for found in description.get_all_operations():
            operation = found.ok()  # type: ignore[union-attr] # an Err fails here, as it should
            for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
                send(live, operation, mode, arena.seed, outcome)
    arena.report(f"{outcome.attack}: {outcome.tried} tried, {outcome.lost} lost")
    yield outcome


def send(live: Live, operation: Any, mode: GenerationMode, number: int, outcome: Outcome) -> None:
    """Send requests to one operation."""

    @seed(number)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def one(case: Any) -> None:
        outcome.trial(_problem(case, live.address))

    with suppress(Unsatisfiable):  # an operation without parameters has no invalid request
        one()


def _problem(case: Any, address: str) -> list[str]:
    """What is wrong with an answer."""
    checks = [not_a_server_error, status_code_conformance, response_schema_conformance]
    try:
        case.validate_response(case.call(base_url=address), checks=checks)
    except BaseException as problem:  # failures come as groups
        if isinstance(problem, KeyboardInterrupt):
            raise
        return [f"{case.method} {case.path}: {str(problem)[:160]}"]
    return []
