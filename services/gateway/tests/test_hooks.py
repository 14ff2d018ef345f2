"""Hooks over HTTP: their secret travels sealed, an edit carries what was sent, the audit is asked page by page."""

from __future__ import annotations

import httpx2
import pytest

from popagent_kit import sealing
from popagent_kit.clock import now
from popagent_kit.errors import RevisionConflictError
from popagent_proto.chat import hooks
from popagent_proto.chat.secrets import GetSealingKey, SealingKeyView
from popagent_proto.chat.sessions import DeletedView

from .conftest import Owner

PRIVATE = bytes(range(32))
SECRET = "a-long-enough-secret"
HOOK = hooks.HookView(
    id="h1",
    name="Guard",
    event="PreToolUse",
    matcher="write",
    kind="http",
    url="https://guard.example.com/x",
    has_secret=True,
    timeout_ms=5_000,
    on_failure="block",
    order_index=100,
    enabled=True,
    revision=3,
    created_at=now(),
    updated_at=now(),
)
NEW = {"name": "Guard", "event": "PreToolUse", "url": HOOK.url}


@pytest.fixture
def keeper(chat: Owner) -> Owner:
    chat.answer(GetSealingKey, SealingKeyView(public_key=sealing.public_half(PRIVATE)))
    chat.answer(hooks.CreateHook, HOOK)
    chat.answer(hooks.UpdateHook, HOOK)
    return chat


async def test_a_new_hook_travels_with_its_secret_sealed(http: httpx2.AsyncClient, keeper: Owner) -> None:
    answer = await http.post("/api/hooks", json={**NEW, "secret": SECRET}, headers={"idempotency-key": "once"})

    asked = keeper.last()
    assert (answer.status_code, answer.json()) == (201, HOOK.wire())
    assert (asked.command_id, asked.fields.model_fields_set) == ("once", {"name", "event", "url"})
    assert sealing.opened(PRIVATE, asked.sealed_secret, hooks.HOOK_SECRET_PURPOSE) == SECRET
    assert SECRET not in repr([each.wire() for each in keeper.asked]) + answer.text


async def test_an_edit_carries_only_what_the_client_sent(http: httpx2.AsyncClient, keeper: Owner) -> None:
    await http.patch("/api/hooks/h1", json={"revision": 3, "enabled": False})
    kept = keeper.last()
    await http.patch("/api/hooks/h1", json={"revision": 3, "secret": None})
    removed = keeper.last()

    assert (kept.hook_id, kept.changes.model_fields_set) == ("h1", {"revision", "enabled"})
    assert "sealed_secret" not in kept.model_fields_set
    assert ("sealed_secret" in removed.model_fields_set, removed.sealed_secret) == (True, None)


async def test_an_old_revision_is_answered_with_the_stored_hook(http: httpx2.AsyncClient, chat: Owner) -> None:
    chat.answer(hooks.UpdateHook, RevisionConflictError(extra={"hook": HOOK.wire()}))

    answer = await http.patch("/api/hooks/h1", json={"revision": 2, "name": "Other"})

    assert answer.status_code == 409
    assert answer.json() == {"error": "revision conflict", "code": "revision_conflict", "hook": HOOK.wire()}


async def test_hooks_are_listed_tried_and_deleted_and_their_runs_read(http: httpx2.AsyncClient, chat: Owner) -> None:
    trial = hooks.HookTrialView(
        status="denied", decision="deny", reason="No.", sent={"test": True}, output="{}", duration_ms=3
    )
    page = hooks.HookList(items=[HOOK], origins=["http://127.0.0.1:9000"], commands_problem="No folder.")
    chat.answer(hooks.ListHooks, page)
    chat.answer(hooks.TryHook, trial)
    chat.answer(hooks.DeleteHook, DeletedView(id="h1"))
    chat.answer(hooks.ListHookRuns, hooks.HookRunList(items=[], next_cursor="7"))

    listed = await http.get("/api/hooks")
    tried = await http.post("/api/hooks/h1/test")
    deleted = await http.delete("/api/hooks/h1")
    runs = await http.get("/api/sessions/s1/hooks?turnId=t1&limit=9&cursor=3")

    assert listed.json() == page.wire()
    assert (tried.status_code, tried.json()) == (200, trial.wire())
    assert deleted.json() == {"id": "h1", "deleted": True}
    assert runs.json() == {"items": [], "nextCursor": "7"}
    asked = chat.last()
    assert (asked.session_id, asked.turn_id, asked.limit, asked.cursor) == ("s1", "t1", 9, "3")
