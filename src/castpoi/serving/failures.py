"""Which HTTP status each of our errors has: one table; routes raise and never map."""

from collections.abc import Iterable
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from castpoi.core.errors import (
    BadInput,
    BrokenFolder,
    BrokenStore,
    CastPoiError,
    ModelNotReady,
    Overloaded,
    RepeatedKey,
    UnknownMethod,
)
from castpoi.serving.answers import error_answer
from castpoi.serving.batcher import RETRY_SECONDS
from castpoi.serving.logs import log_failure
from castpoi.serving.schema import MANY, ONE

_STATUS: Final[dict[type[CastPoiError], int]] = {
    BadInput: 422,
    RepeatedKey: 409,
    BrokenFolder: 409,
    UnknownMethod: 409,
    ModelNotReady: 503,
    Overloaded: 503,
    BrokenStore: 503,
}
_FRAMES: Final = frozenset({"body", "query", "path", ONE, MANY})
"""Parts of a field's address that say only where it was sent."""


def tell_failures(app: FastAPI) -> None:
    """Let the app answer every error with a sentence, and name the fields that are wrong."""
    app.add_exception_handler(CastPoiError, _tell_ours)
    app.add_exception_handler(RequestValidationError, _tell_fields)
    app.add_exception_handler(HTTPException, _tell_http)


def _tell_ours(_: Request, problem: Exception) -> JSONResponse:
    status = next((_STATUS[kind] for kind in type(problem).__mro__ if kind in _STATUS), 500)
    if status == 500:  # the store logs its own failures, once for all requests that share one
        log_failure("request failed", problem)
    headers = {"Retry-After": str(RETRY_SECONDS)} if status == 503 else None
    return error_answer(status, str(problem), headers=headers)


def _tell_fields(_: Request, problem: Exception) -> JSONResponse:
    assert isinstance(problem, RequestValidationError)
    errors = problem.errors()
    if errors[0]["type"] == "json_invalid":
        return error_answer(400, _malformed_json(errors[0], str(problem.body)))
    fields = [{"field": _address(wrong["loc"]), "problem": _words(wrong)} for wrong in errors]
    first = fields[0]
    more = f" (and {len(fields) - 1} more)" if len(fields) > 1 else ""
    return error_answer(422, f"{first['field']}: {first['problem']}{more}", fields=fields)


def _tell_http(_: Request, problem: Exception) -> JSONResponse:
    assert isinstance(problem, HTTPException)
    return error_answer(problem.status_code, str(problem.detail), headers=problem.headers)


def _malformed_json(wrong: dict[str, Any], body: str) -> str:
    """A sentence with the line and column of the first character that is no JSON."""
    position = wrong["loc"][-1]
    line = body.count("\n", 0, position) + 1
    column = position - body.rfind("\n", 0, position)
    return f"the body is not valid JSON: {wrong['ctx']['error']} (line {line}, column {column})"


def _address(parts: Iterable[Any]) -> str:
    """The name of a field, such as history[2].at."""
    address = ""
    for part in parts:
        if part in _FRAMES:
            continue
        address += f"[{part}]" if isinstance(part, int) else f".{part}"
    return address.removeprefix(".") or "body"


def _words(wrong: dict[str, Any]) -> str:
    if _address(wrong["loc"]) == "body" and wrong["type"] != "value_error":
        return "send a JSON object, with the header Content-Type: application/json"
    return str(wrong["msg"]).removeprefix("Value error, ")
