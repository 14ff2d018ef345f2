"""Where the embedded model is; the configured endpoint's settings are the model library's own."""

from __future__ import annotations

from pydantic import SecretStr

from popagent_kit.settings import Settings, setting


class LocalModelSettings(Settings):
    """Set by the supervisor when it runs the embedded model server."""

    url: str | None = setting(
        "POPAGENT_LOCAL_MODEL_URL", None, description="Base URL of the embedded model server; `popagent up` sets it."
    )
    key: SecretStr | None = setting(
        "POPAGENT_LOCAL_MODEL_KEY", None, description="Key of the embedded model server.", secret=True
    )
