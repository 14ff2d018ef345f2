"""Which command carries out which route of the HTTP API; a test holds both sides to it."""

from __future__ import annotations

from typing import Final

# (method, path template) → command. A route may serve several commands; here stands the plainest.
VERBS: Final[dict[tuple[str, str], str]] = {
    ("POST", "/api/chat"): "chat",
    ("GET", "/api/chat/{id}/stream"): "watch",
    ("POST", "/api/chat/{id}/stop"): "stop",
    ("GET", "/api/sessions"): "sessions list",
    ("POST", "/api/sessions"): "sessions new",
    ("GET", "/api/sessions/{id}"): "sessions show",
    ("PUT", "/api/sessions/{id}"): "sessions shorten",
    ("GET", "/api/sessions/{id}/search"): "sessions find",
    ("GET", "/api/sessions/{id}/export"): "history",
    ("PUT", "/api/sessions/{id}/head"): "sessions branch",
    ("PATCH", "/api/sessions/{id}"): "sessions rename",
    ("DELETE", "/api/sessions/{id}"): "sessions delete",
    ("GET", "/api/workspaces"): "workspace list",
    ("POST", "/api/workspaces"): "workspace add",
    ("GET", "/api/workspaces/candidates"): "workspace candidates",
    ("GET", "/api/agents"): "agents",
    ("PATCH", "/api/agents/{id}"): "agents patch",
    ("GET", "/api/agents/health"): "agent-health",
    ("GET", "/api/company"): "company",
    ("GET", "/api/hooks"): "hooks",
    ("POST", "/api/hooks"): "hooks add",
    ("PATCH", "/api/hooks/{id}"): "hooks patch",
    ("DELETE", "/api/hooks/{id}"): "hooks delete",
    ("POST", "/api/hooks/{id}/test"): "hooks test",
    ("GET", "/api/sessions/{id}/hooks"): "hooks runs",
    ("GET", "/api/models"): "models",
    ("GET", "/api/models/connection"): "models connection",
    ("PUT", "/api/models/connection"): "models connect",
    ("DELETE", "/api/models/connection"): "models disconnect",
    ("POST", "/api/models/connection/test"): "models test",
    ("GET", "/api/models/detect"): "models detect",
    ("GET", "/api/settings/agent-runtime"): "settings-show agent-runtime",
    ("PATCH", "/api/settings/agent-runtime"): "settings-patch agent-runtime",
    ("GET", "/api/events"): "events",
    ("GET", "/api/health"): "health",
    ("GET", "/api/observability/traces"): "traces list",
    ("GET", "/api/observability/traces/{id}"): "traces show",
    ("GET", "/api/observability/health"): "traces store",
    ("GET", "/api/openapi.json"): "openapi",
}
