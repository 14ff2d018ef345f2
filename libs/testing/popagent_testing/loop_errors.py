"""What ends in an event loop's exception handler, where nobody would see it, fails the test it happened in."""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator
from typing import Final

import pytest

MARKER: Final = "loop_errors"


class LoopErrors(logging.Handler):
    """Keeps what the loop's default handler logs: errors of callbacks, errors of tasks that nobody asked for."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the message and the error."""
        error = record.exc_info[1] if record.exc_info else None
        self.found.append(record.getMessage() + (f"\n{error!r}" if error is not None else ""))


@pytest.fixture(autouse=True)
def no_error_is_left_in_the_loop(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail the test when an error reached the event loop; mark the few that provoke one with `loop_errors`."""
    errors = LoopErrors()
    logger = logging.getLogger("asyncio")
    logger.addHandler(errors)
    yield
    gc.collect(1)  # a task in a cycle with its error tells when it is collected
    logger.removeHandler(errors)
    if errors.found and request.node.get_closest_marker(MARKER) is None:
        pytest.fail("\n".join(["errors that nobody saw:", *errors.found]), pytrace=False)
