"""Secrets in a body: sealed here, and opened by their keeper alone."""

from __future__ import annotations

from pydantic import SecretStr

from popagent_gateway.asking import Bus
from popagent_kit import sealing
from popagent_proto.base import Wire
from popagent_proto.chat.secrets import GetSealingKey


async def sealed_field(bus: Bus, body: Wire, name: str, purpose: str) -> dict[str, str | None]:
    """Return a body's secret as it may travel, named `sealed_…`; absent stays absent, null stays null."""
    if name not in body.model_fields_set:
        return {}
    secret: SecretStr | None = getattr(body, name)
    if secret is None:
        return {f"sealed_{name}": None}
    owner = await bus.ask(GetSealingKey())
    return {f"sealed_{name}": sealing.sealed(owner.public_key, secret.get_secret_value(), purpose)}
