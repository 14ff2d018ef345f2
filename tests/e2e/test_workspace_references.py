"""A workspace that tasks or schedules refer to stays, whatever comes at the same moment."""

from __future__ import annotations

import asyncio

from popagent_kit.ids import new_id
from tests.suite import Suite
from tests.talk import Talk
from tests.tasks import give, task_in


async def new_workspace(suite: Suite, talk: Talk) -> str:
    """Register a folder of its own, and return the id."""
    name = f"w-{new_id()}"
    (suite.workspaces / name).mkdir()
    made = await talk.json("POST", "/api/workspaces", {"name": name, "path": name})
    return str(made["id"])


async def test_a_workspace_goes_only_when_its_tasks_and_schedules_are_gone(suite: Suite, talk: Talk) -> None:
    workspace = await new_workspace(suite, talk)
    schedule = await talk.json(
        "POST", "/api/schedules", {"name": "A", "prompt": "Do it.", "cron": "@yearly", "workspaceId": workspace}
    )
    task = await give(talk, "Do it.", workspaceId=workspace)
    await task_in(talk, task)

    both = await talk.http.delete(f"/api/workspaces/{workspace}")
    await talk.json("DELETE", f"/api/schedules/{schedule['id']}")
    one = await talk.http.delete(f"/api/workspaces/{workspace}")
    await talk.json("DELETE", f"/api/tasks/{task}")
    none = await talk.http.delete(f"/api/workspaces/{workspace}")

    assert (both.status_code, both.json()["tasks"], both.json()["schedules"]) == (409, 1, 1)
    assert both.json()["error"].startswith("1 task")
    assert (one.status_code, one.json()["tasks"], one.json()["schedules"]) == (409, 1, 0)
    # What the task said in its channel is another reference.
    assert none.status_code == 200 or (none.json()["tasks"], none.json()["schedules"]) == (0, 0)


async def test_of_tasks_and_a_deletion_at_once_no_task_is_left_without_its_workspace(suite: Suite, talk: Talk) -> None:
    for _ in range(3):
        workspace = await new_workspace(suite, talk)

        body = {"prompt": "Look.", "workspaceId": workspace}
        answers = await asyncio.gather(
            *(talk.http.post("/api/tasks", json=body) for _ in range(3)),
            talk.http.delete(f"/api/workspaces/{workspace}"),
            *(talk.http.post("/api/tasks", json=body) for _ in range(3)),
        )

        deleted = answers.pop(3).status_code == 200
        made = [each.json()["id"] for each in answers if each.status_code == 201]
        listed = await talk.json("GET", f"/api/tasks?workspaceId={workspace}")
        assert {each["id"] for each in listed["items"]} == set(made)
        assert deleted == (not made)
        assert {each.status_code for each in answers} <= {201, 409, 422}


async def test_a_workspace_with_documentation_is_kept_until_that_is_gone(suite: Suite, talk: Talk) -> None:
    workspace = await new_workspace(suite, talk)
    docs = f"/api/workspaces/{workspace}/docs"
    page = await talk.json("POST", f"{docs}/page", {"path": "guide/first.md", "body": "# First"})

    kept = await talk.http.delete(f"/api/workspaces/{workspace}")
    await talk.http.delete(f"{docs}/page?path=guide/first.md&revision={page['revision']}")
    await talk.http.delete(f"{docs}/folders?path=guide")
    gone = await talk.http.delete(f"/api/workspaces/{workspace}")
    after = await talk.http.post(f"{docs}/page", json={"path": "late.md"})

    assert (kept.status_code, kept.json()["documents"]) == (409, 2)
    assert kept.json()["error"].startswith("2 documents refer")
    assert gone.status_code == 200
    assert after.status_code in (404, 409)
