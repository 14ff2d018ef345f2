"""The public half of the key, for those who hand a secret over."""

from __future__ import annotations

from typing import Final

from popagent_bus import Handlers
from popagent_chat.deps import ChatDeps
from popagent_chat.secrets import store
from popagent_chat.secrets.keyring import Keyring, SecretUnreadableError
from popagent_db.pool import Pool
from popagent_kit.errors import UnavailableError
from popagent_proto.chat.secrets import GetSealingKey, SealingKeyView

handlers = Handlers[ChatDeps]()

READ_S: Final = 0.3


@handlers.answers(GetSealingKey)
async def get_sealing_key(deps: ChatDeps, query: GetSealingKey) -> SealingKeyView:
    """Return the key that a new value is sealed to."""
    return SealingKeyView(public_key=deps.keyring.public_key())


class SecretsCheck:
    """Whether what is stored was sealed with the key of this process; a missing key matters only then."""

    def __init__(self, pool: Pool, keyring: Keyring) -> None:
        self._pool = pool
        self._keyring = keyring

    async def __call__(self) -> None:
        """Raise SecretUnreadableError when not; an absent database is told by its own check."""
        try:
            async with self._pool.acquire(READ_S) as conn:
                unreadable = await store.UNREADABLE.value(
                    conn, None if self._keyring.trouble else self._keyring.key_id()
                )
        except UnavailableError:
            return
        if unreadable:
            what = "A stored secret" if unreadable == 1 else f"{unreadable} stored secrets"
            why = (
                self._keyring.trouble or "POPAGENT_SECRET_KEY is not the key that sealed it, or the secret was changed."
            )
            raise SecretUnreadableError(f"{what} cannot be read: {why}")
