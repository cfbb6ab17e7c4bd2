"""The service's log: where an error passed, and none of its words."""

from pathlib import Path
from typing import Any

import pytest

from castpoi.core.errors import BadInput
from castpoi.recommend.request import moment_of
from castpoi.serving import logs


def test_a_failure_tells_the_lines_of_the_package_and_not_those_of_libraries_beside_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """An image may install everything below /opt/castpoi."""
    library = "/opt/castpoi/lib/python3.11/site-packages/library.py"
    names: dict[str, Any] = {"moment_of": moment_of}
    exec(compile("def call():\n    moment_of('the-secret', what='at')", library, "exec"), names)
    with pytest.raises(BadInput) as told:
        names["call"]()
    logs.log_failure("request failed", told.value)
    assert "kind=BadInput lines=request.py:" in caplog.text
    assert "library.py" not in caplog.text
    assert Path(__file__).name not in caplog.text
    assert "secret" not in caplog.text
