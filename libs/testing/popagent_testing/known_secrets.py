"""What one test makes known as a secret is none to the next: its beginning would be held back in every stream."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from popagent_telemetry import redaction


@pytest.fixture(autouse=True)
def secrets_are_forgotten() -> Iterator[None]:
    """Forget after each test what it registered."""
    before = dict(redaction._known)
    yield
    redaction._known.clear()
    redaction._known.update(before)
    redaction._field.cache_clear()
