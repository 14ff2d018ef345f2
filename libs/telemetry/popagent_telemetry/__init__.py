"""Traces, metrics and redaction: what every process tells about itself."""

from popagent_telemetry import metrics
from popagent_telemetry.redaction import (
    REDACTED,
    StreamRedactor,
    cut_redacted,
    is_secret_name,
    marks_in,
    redact,
    redact_value,
    register_secret,
    secrets_registered,
    without_marks,
    without_private_keys,
)
from popagent_telemetry.setup import Telemetry, set_up
from popagent_telemetry.tracing import (
    current_span,
    current_trace_id,
    extract,
    inject,
    note_error,
    remote_context,
    span,
)

__all__ = [
    "REDACTED",
    "StreamRedactor",
    "Telemetry",
    "current_span",
    "current_trace_id",
    "cut_redacted",
    "extract",
    "inject",
    "is_secret_name",
    "marks_in",
    "metrics",
    "note_error",
    "redact",
    "redact_value",
    "register_secret",
    "remote_context",
    "secrets_registered",
    "set_up",
    "span",
    "without_marks",
    "without_private_keys",
]
