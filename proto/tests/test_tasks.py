"""What a client may say of a task, and what only services may."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from popagent_proto.task_runner.tasks import (
    EVIDENCE_CHARACTERS,
    MOST_ATTEMPTS,
    PROMPT_CHARACTERS,
    CreateTaskBody,
    ListTasks,
    ResolveTaskBody,
)


def refused_field(model: type[Any], values: dict[str, Any]) -> tuple[int | str, ...]:
    with pytest.raises(ValidationError) as refused:
        model.model_validate(values)
    return refused.value.errors()[0]["loc"]


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({}, "prompt"),
        ({"prompt": ""}, "prompt"),
        ({"prompt": " \n\t"}, "prompt"),
        ({"prompt": "a\x00b"}, "prompt"),
        ({"prompt": "a" * (PROMPT_CHARACTERS + 1)}, "prompt"),
        ({"prompt": "a", "workspaceId": "../etc"}, "workspaceId"),
        ({"prompt": "a", "agentId": "a.b"}, "agentId"),
        ({"prompt": "a", "model": ""}, "model"),
        ({"prompt": "a", "priority": 11}, "priority"),
        ({"prompt": "a", "maxAttempts": 0}, "maxAttempts"),
        ({"prompt": "a", "maxAttempts": MOST_ATTEMPTS + 1}, "maxAttempts"),
        ({"prompt": "a", "source": "self-update"}, "source"),
        ({"prompt": "a", "workflow": True}, "workflow"),
        ({"prompt": "a", "scheduleId": "s"}, "scheduleId"),
        ({"prompt": "a", "state": "completed"}, "state"),
    ],
)
def test_a_client_s_task_is_bounded_and_says_nothing_of_its_source(values: dict[str, Any], field: str) -> None:
    assert refused_field(CreateTaskBody, values) == (field,)


def test_what_is_needed_of_a_task_is_its_prompt() -> None:
    body = CreateTaskBody.model_validate({"prompt": "Count the herons."})

    assert (body.priority, body.max_attempts, body.workspace_id, body.model) == (0, 3, None, None)


@pytest.mark.parametrize("evidence", ["", "  ", "a" * (EVIDENCE_CHARACTERS + 1)])
def test_evidence_says_something_and_is_bounded(evidence: str) -> None:
    assert refused_field(ResolveTaskBody, {"evidence": evidence}) == ("evidence",)


@pytest.mark.parametrize(
    ("values", "field"), [({"limit": 201}, "limit"), ({"limit": 0}, "limit"), ({"state": ["done"]}, "state")]
)
def test_a_list_asks_for_known_states_and_at_most_two_hundred(values: dict[str, Any], field: str) -> None:
    assert refused_field(ListTasks, values)[0] == field
