"""Which model answers, for the health of this service; it never decides whether the service is ready."""

from __future__ import annotations

from typing import Final

from popagent_chat.models.choice import model_choice
from popagent_db.pool import Pool
from popagent_kit.errors import UnavailableError
from popagent_runs.models.choice import ModelChoice
from popagent_runs.models.gateway import ModelGateway

# The whole answer about health must be there within a second.
READ_S: Final = 0.3
LIST_S: Final = 0.2


class ModelCheck:
    """Remembers what was stored, so that an absent database is not told as the model's trouble."""

    def __init__(self, pool: Pool, models: ModelGateway) -> None:
        self._pool = pool
        self._models = models
        self._choice: ModelChoice | None = None

    async def __call__(self) -> str:
        """Say which model answers a chat that names none.

        Raises:
            UnavailableError: None would; the message says why.
        """
        try:
            async with self._pool.acquire(READ_S) as conn:
                self._choice = await model_choice(conn)
        except UnavailableError:
            if self._choice is None:
                raise
        state = await self._models.state(self._choice, wait_s=LIST_S)
        if state.trouble:
            raise UnavailableError(state.trouble)
        return f"{state.model}, {'the embedded model' if state.source == 'embedded' else f'at {state.host}'}"
