"""Reading a prompt ahead: something that popagent's own model server offers, and no other is ever asked for."""

from __future__ import annotations

from typing import Final

from popagent_kit import json
from popagent_kit.errors import MalformedJsonError
from popagent_models.catalogue import bounded_body
from popagent_models.client import encode
from popagent_models.errors import ModelProviderError
from popagent_models.request import ModelRequest
from popagent_models.upstream import BrokenOffError, RefusedError, Upstream

PATH: Final = "/warm-up"
# A busy machine reads ten tokens a second.
TIMEOUT_S: Final = 300.0


async def warm_up(upstream: Upstream, request: ModelRequest) -> bool:
    """Tell whether the server read the prompt of `request` to its end, or stopped because somebody asked.

    Nothing is answered: there is no usage, and no record of any.

    Raises:
        ModelError: It could not be asked, or failed.
    """
    try:
        body = await upstream.post(PATH, encode(request.body()), TIMEOUT_S)
        try:
            found = json.loads(await bounded_body(body))
        finally:
            body.close()
    except (RefusedError, BrokenOffError, MalformedJsonError) as error:
        raise ModelProviderError(f"The embedded model read nothing ahead: {type(error).__name__}.") from error
    return isinstance(found, dict) and found.get("read") is True
