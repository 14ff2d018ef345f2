"""One POST to a hook's server, and what of its answer counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from popagent_runs.hooks.failure import HookFailedError
from popagent_web.addresses import may_be_reached
from popagent_web.outbound import AddressRefusedError, Outbound, OutboundError

LONGEST_ANSWER: Final = 64 * 1024


class Poster:
    """Posts for one process."""

    def __init__(self) -> None:
        self._outbound = Outbound(may_be_reached, LONGEST_ANSWER)

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> bytes:
        """Return the body of a success, at most LONGEST_ANSWER bytes; the caller bounds the time.

        Raises:
            HookFailedError: No connection, no success, or too long an answer.
        """
        try:
            answer = await self._outbound.send(
                "POST", url, body=body, headers={"content-type": "application/json", **headers}
            )
        except AddressRefusedError as error:
            raise HookFailedError(
                "has a name that leads to a private address; name the address itself in POPAGENT_HOOK_ORIGINS"
            ) from error
        except OutboundError as error:
            raise HookFailedError(str(error)) from error
        if answer.redirects:
            raise HookFailedError(f"answered {answer.status}, a redirect, which is not followed")
        if not answer.succeeded:
            raise HookFailedError(f"answered {answer.status}")
        return answer.body

    async def close(self) -> None:
        """Close every connection."""
        await self._outbound.close()
