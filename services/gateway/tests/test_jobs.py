"""What takes longer answers 202 with a job, and the id of a job says whom to ask."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from popagent_gateway.jobs import OWNERS
from popagent_kit.clock import now
from popagent_proto.chat import sessions, workspaces
from popagent_proto.chat.jobs import GetChatJob, ListChatJobs
from popagent_proto.common import JobList, JobView
from popagent_proto.docs_indexer.imports import GetDocsJob, ListDocsJobs
from services.gateway.tests.conftest import Owner

CLONE = {"url": "https://example.org/house.git"}


def job(job_id: str = "chat_0f8fad5b-d9cb-469f-a165-70867728950e", **fields: Any) -> JobView:
    values = {"kind": "workspaces-clone", "state": "running", "progress": 0.5, "created_at": now(), "updated_at": now()}
    return JobView.model_validate({"id": job_id, **values, **fields})


async def test_a_clone_answers_202_with_its_job_and_where_it_is(http: httpx2.AsyncClient, chat: Owner) -> None:
    chat.answer(workspaces.CloneWorkspace, job())

    answer = await http.post(
        "/api/workspaces", json={**CLONE, "name": "House", "directory": "home"}, headers={"idempotency-key": "once-1"}
    )
    asked = chat.last()

    assert (answer.status_code, answer.headers["location"]) == (202, f"/api/jobs/{job().id}")
    assert (answer.json()["state"], answer.json()["progress"], answer.json()["result"]) == ("running", 0.5, None)
    assert asked.command_id == "once-1"
    assert asked.body == workspaces.CloneWorkspaceBody(url=CLONE["url"], name="House", directory="home")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "path"),
        ({"name": "x"}, "path"),
        ({"path": "x"}, "name"),
        ({**CLONE, "path": "x", "name": "x"}, "path"),
        ({"path": "x", "name": "x", "directory": "y"}, "directory"),
        ({"url": ""}, "url"),
        ({"url": 5}, "url"),
        ({"url": "x" * 2_001}, "url"),
        ({"url": "a\x00b"}, "url"),
        ({**CLONE, "directory": "x" * 101}, "directory"),
        ({**CLONE, "name": "a\nb"}, "name"),
        ({**CLONE, "branch": "main"}, "branch"),
    ],
)
async def test_half_of_a_workspace_is_refused_with_the_field(
    http: httpx2.AsyncClient, chat: Owner, body: dict[str, Any], field: str
) -> None:
    answer = await http.post("/api/workspaces", json=body)

    assert (answer.status_code, answer.json()["field"]) == (422, field)
    assert chat.asked == []


async def test_deleting_every_chat_is_a_job_and_a_long_chat_too(http: httpx2.AsyncClient, chat: Owner) -> None:
    chat.answer(workspaces.DeleteWorkspaceSessions, job(kind="workspaces-delete-sessions"))
    chat.answer(sessions.DeleteSession, sessions.SessionDeletedView(id="s1", job=job(kind="sessions-remove")))

    every = await http.delete("/api/workspaces/w1/sessions")
    asked = chat.last()
    long = await http.delete("/api/sessions/s1")
    chat.answer(sessions.DeleteSession, sessions.SessionDeletedView(id="s1"))
    short = await http.delete("/api/sessions/s1")

    assert (every.status_code, every.json()["kind"], asked.workspace_id) == (202, "workspaces-delete-sessions", "w1")
    assert every.headers["location"] == long.headers["location"] == f"/api/jobs/{job().id}"
    assert (long.status_code, long.json()["kind"]) == (202, "sessions-remove")
    assert (short.status_code, short.json()) == (200, {"id": "s1", "deleted": True})


async def test_a_job_is_asked_of_the_service_that_its_id_names(
    http: httpx2.AsyncClient, chat: Owner, docs_indexer: Owner
) -> None:
    imported = job("docs-indexer_1", state="completed")
    docs_indexer.answer(GetDocsJob, imported)
    chat.answer(GetChatJob, job(result={"workspaceId": "w1"}, state="completed", progress=1.0))
    waiting, done = job("chat_1", state="queued"), job("chat_2", state="completed", created_at=now())
    chat.answer(ListChatJobs, JobList(items=[done, waiting]))
    docs_indexer.answer(ListDocsJobs, JobList(items=[imported]))

    found = await http.get(f"/api/jobs/{job().id}")
    asked = chat.last()
    theirs = await http.get("/api/jobs/docs-indexer_1")
    listed = await http.get("/api/jobs")
    chat.asked.clear()
    unknown = [await http.get(f"/api/jobs/{each}") for each in ("none", "scheduler_1", "chat.1", "x" * 65, "_chat")]

    assert (found.json()["result"], asked.job_id) == ({"workspaceId": "w1"}, job().id)
    assert [each["id"] for each in listed.json()["items"]] == ["chat_1", "chat_2", "docs-indexer_1"]
    assert theirs.json()["id"] == "docs-indexer_1"
    assert {(each.status_code, each.json()["code"]) for each in unknown} == {(404, "not_found")}
    assert chat.asked == []


def test_whoever_owns_jobs_is_asked_by_the_name_in_their_ids() -> None:
    for service, messages in OWNERS.items():
        assert {message.subject_parts()[0] for message in messages} == {service}
