"""Ask one hook about one event; whatever it does, there is an outcome."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json as plain_json
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from popagent_kit import json
from popagent_kit.errors import AppError, MalformedJsonError
from popagent_proto.chat.hooks import HookDecision, HookStatus
from popagent_runs.hooks.commanding import HookCommands
from popagent_runs.hooks.content import bounded_reason, bounded_text
from popagent_runs.hooks.failure import HookFailedError
from popagent_runs.hooks.posting import Poster
from popagent_runs.hooks.rows import RESOURCE, StoredHook
from popagent_runs.hooks.rules import MAY_REFUSE
from popagent_runs.secrets import SecretsPort
from popagent_telemetry import inject, metrics, register_secret, span
from popagent_web.addresses import Origin, origin_of

log = logging.getLogger(__name__)

SECONDS: Final = metrics.histogram(
    "popagent_hook_seconds", "Time that hooks took, by event and outcome", ("event", "status")
)
TRIALS_AT_ONCE: Final = 4
SIGNATURE: Final = "x-popagent-signature"
KNOWN: Final = frozenset({"decision", "reason"})
NO_REASON: Final = "It gave no reason."


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a hook decided. `decision` is None when its event is only told; `reason` is empty when nothing is to say."""

    status: HookStatus
    decision: HookDecision | None
    reason: str = ""
    output: str = ""
    duration_ms: int = 0


class HookCalls:
    """Asks hooks for one process: where they may be, and what requests are signed with."""

    def __init__(self, origins: frozenset[Origin], commands: HookCommands, secrets: SecretsPort) -> None:
        self.origins = origins
        self.commands = commands
        self.trials = asyncio.Semaphore(TRIALS_AT_ONCE)
        """Held while somebody tries a hook."""
        self._secrets = secrets
        self._poster = Poster()
        self._redacted: set[str] = set()

    async def ask(self, hook: StoredHook, run_id: str, told: Mapping[str, Any]) -> Outcome:
        """Send `told`, which is bounded and without secrets, and return what the hook makes of it."""
        began_at = time.monotonic()
        answer = ""
        attributes = {"popagent.hook.id": hook.id, "popagent.hook.event": hook.event}
        with span("hook.run", attributes) as current:
            try:
                async with asyncio.timeout(hook.timeout_ms / 1_000):
                    data = await self._answer(hook, run_id, told)
                answer = bounded_text(data)
                status, decision, reason = _understood(hook, data)
            except TimeoutError:
                status, decision, reason = _failed(hook, "timeout", f"did not answer within {hook.timeout_ms:,} ms")
            except HookFailedError as error:
                answer = bounded_text(error.output)
                status, decision, reason = _failed(hook, "error", str(error))
            except AppError as error:
                status, decision, reason = _failed(hook, "error", f"cannot be asked. {error.message}")
            current.set_attribute("popagent.hook.status", status)
        took_s = time.monotonic() - began_at
        SECONDS.labels(hook.event, status).observe(took_s)
        if status in {"timeout", "error"}:
            log.warning("a hook failed", extra={"hook": hook.id, "event": hook.event, "reason": reason})
        return Outcome(status, decision, reason, answer, round(took_s * 1_000))

    async def close(self) -> None:
        """Close every connection."""
        await self._poster.close()

    async def _answer(self, hook: StoredHook, run_id: str, told: Mapping[str, Any]) -> bytes:
        body = json.dumps(sent_to(hook, run_id, told))
        if hook.kind == "command":
            return (await self.commands.printed(hook.argv, body)).encode()
        return await self._posted(hook, run_id, body)

    async def _posted(self, hook: StoredHook, run_id: str, body: bytes) -> bytes:
        # The list may have become shorter since the hook was stored.
        if origin_of(hook.url) not in self.origins:
            raise HookFailedError("is at an origin that POPAGENT_HOOK_ORIGINS does not name")
        headers = {"x-popagent-event": hook.event, "x-popagent-run": run_id}
        inject(headers)
        if hook.sealed is not None:
            secret = self._secrets.open(bytes.fromhex(hook.sealed), RESOURCE, hook.id).get_secret_value()
            if hook.sealed not in self._redacted:
                register_secret(secret, "hook secret")
                self._redacted.add(hook.sealed)
            headers[SIGNATURE] = signature(secret, body, int(time.time()))
        return await self._poster.post(hook.url, body, headers)


def sent_to(hook: StoredHook, run_id: str, told: Mapping[str, Any]) -> dict[str, Any]:
    """Return all that a hook reads of an event."""
    return {**told, "runId": run_id, "hook": {"id": hook.id, "name": hook.name}}


def signature(secret: str, body: bytes, at_s: int) -> str:
    """Return the value of the header: when it was signed, and HMAC-SHA256 of that and the body."""
    digest = hmac.new(secret.encode(), f"{at_s}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={at_s},v1={digest}"


def _understood(hook: StoredHook, data: bytes) -> tuple[HookStatus, HookDecision | None, str]:
    """Read an answer: nothing at all agrees; else it is an object with `decision`, and `reason` when it refuses.

    Of a program it is the last line: warnings of its libraries may stand before it.
    """
    if hook.event not in MAY_REFUSE:
        return "ok", None, ""
    if hook.kind == "command":
        data = data.strip().rpartition(b"\n")[2]
    if not data.strip():
        return "ok", "allow", ""
    try:
        said = json.loads(data)
    except MalformedJsonError:
        return _failed(hook, "error", "answered what is not JSON")
    if not isinstance(said, dict) or said.get("decision") not in ("allow", "deny"):
        return _failed(hook, "error", 'answered without a "decision" of "allow" or "deny"')
    if _has_a_name_twice(data):
        return _failed(hook, "error", "answered with a name that stands there twice")
    if said["decision"] == "allow":
        # It may ask for more than to let it pass, as to change the arguments: that must not be believed done.
        unknown = said.keys() - KNOWN
        if unknown:
            return _failed(hook, "error", f"answered with “{min(unknown)}”, which means nothing here")
        return "ok", "allow", ""
    reason = said.get("reason")
    return "denied", "deny", (bounded_reason(reason) if isinstance(reason, str) else "") or NO_REASON


def _has_a_name_twice(data: bytes) -> bool:
    """Tell whether the JSON says two things under one name: readers differ in which of them they take."""

    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        said = dict(pairs)
        if len(said) < len(pairs):
            raise ValueError
        return said

    try:
        plain_json.loads(data, object_pairs_hook=once)
    except (ValueError, RecursionError):
        return True
    return False


def _failed(hook: StoredHook, status: HookStatus, what: str) -> tuple[HookStatus, HookDecision | None, str]:
    reason = bounded_reason(f"It {what.rstrip('.')}.")
    if hook.event not in MAY_REFUSE:
        return status, None, reason
    return status, ("deny" if hook.on_failure == "block" else "allow"), reason
