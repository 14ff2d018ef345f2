"""Secrets of people: they reach their owner sealed and never leave it."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final

from pydantic import Field

from popagent_proto.base import Query, View

# What a sealed value may be used for is part of its box.
MODEL_KEY_PURPOSE: Final = "models.connection"

# A box of popagent_kit.sealing, base64url.
Sealed = Annotated[str, Field(max_length=16_384, pattern=r"^[A-Za-z0-9_=-]+$")]


class SealingKeyView(View):
    """The public half of the key that values are sealed to."""

    public_key: str = Field(description="X25519, base64url.")


class GetSealingKey(Query[SealingKeyView]):
    """409 while the owner has no key of its own, and so can keep no secret."""

    subject: ClassVar = "popagent.chat.qry.secrets-sealing-key.v1"
