"""No request that the OpenAPI description allows or forbids is answered with a 5xx."""

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    response_schema_conformance,
    status_code_conformance,
)

from castpoi.serving.app import create_app
from tests.serving.live import Live

OPERATIONS = [
    *("POST /v1/recommend", "POST /v1/visits", "GET /v1/users", "GET /v1/users/{user}/visits"),
    *("DELETE /v1/users/{user}", "DELETE /v1/visits", "GET /v1/places"),
]
"""Operations with parameters or a body; /v1/explain has the body of /v1/recommend."""


@pytest.fixture(scope="module")
def described(live: Live) -> Any:
    """The OpenAPI description, as schemathesis reads it."""
    return schemathesis.openapi.from_dict(create_app(live.service).openapi())


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_no_request_breaks_the_service(
    live: Live, described: Any, operation: str, mode: GenerationMode
) -> None:
    method, path = operation.split()

    @settings(
        max_examples=10,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=described[path][method].as_strategy(generation_mode=mode))
    def ask(case: Any) -> None:
        answer = case.call(base_url=live.address)
        case.validate_response(
            answer,
            checks=[not_a_server_error, status_code_conformance, response_schema_conformance],
        )

    ask()
