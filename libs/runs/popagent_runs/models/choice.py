"""What decides where a run's answers come from: the runtime settings and the saved connection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from popagent_proto.chat.settings import AgentRuntimeView

# Where the connection's key lies among the secrets.
RESOURCE: Final = "models"
NAME: Final = "connection"


class StoredConnection(BaseModel):
    """What a person chose in the page; `sealed` is the blob of its key in hexadecimal digits."""

    model_config = ConfigDict(frozen=True)

    url: str | None
    revision: int
    sealed: str | None = Field(repr=False)


NOTHING_STORED: Final = StoredConnection(url=None, revision=0, sealed=None)


@dataclass(frozen=True)
class ModelChoice:
    """As it was at one moment."""

    runtime: AgentRuntimeView
    connection: StoredConnection = NOTHING_STORED
