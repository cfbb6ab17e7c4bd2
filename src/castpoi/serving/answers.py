"""How the service says no: one JSON object with a sentence, and the fields that are wrong."""

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi.responses import JSONResponse


def error_answer(
    status: int,
    sentence: str,
    *,
    fields: Sequence[Mapping[str, str]] = (),
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """An answer that tells what is wrong and, where fields are, which ones."""
    content: dict[str, Any] = {"error": sentence}
    if fields:
        content["fields"] = [dict(field) for field in fields]
    return JSONResponse(content, status_code=status, headers=dict(headers or {}))
