"""Shapes that exist on HTTP only."""

from __future__ import annotations

from pydantic import Field

from popagent_proto.base import View
from popagent_proto.common import HealthView


class ErrorBody(View):
    """Every refusal; on conflicts the stored object stands beside these."""

    error: str = Field(description="One sentence for a person.")
    code: str
    field: str | None = None


class SuiteHealthView(View):
    """`ready` needs the application's and the observability PostgreSQL; models and search never count."""

    ready: bool
    checks: dict[str, str]
    services: list[HealthView]
