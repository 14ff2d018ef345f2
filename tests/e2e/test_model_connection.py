"""The first minutes without a model: what is wrong is told, a server is tried and saved, the next question answered."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import pytest

from popagent_kit import json
from popagent_kit.ids import new_id
from popagent_testing.model_server import ModelServer
from tests.suite import KEY, Suite

pytestmark = pytest.mark.full

MODEL_KEY = "sk-of-a-person-7f3a"
CONNECTION = "/api/models/connection"


def message(text: str) -> dict[str, Any]:
    return {
        "id": new_id(),
        "message": {"id": new_id(), "role": "user", "parts": [{"type": "text", "text": text}]},
    }


async def said(http: httpx2.AsyncClient, text: str) -> str:
    return (await http.post("/api/chat", json=message(text))).text


def is_back(suite: Suite) -> bool:
    row = suite.program("chat")
    return row.restarts == 1 and row.state == "ready"


async def test_a_server_is_tried_saved_used_and_kept_over_a_kill(tmp_path: Path) -> None:
    nothing = {"POPAGENT_MODEL_URL": "", "POPAGENT_CACHE": str(tmp_path / "empty")}
    with ModelServer(key=MODEL_KEY) as model, Suite(tmp_path, env=nothing) as suite:
        async with httpx2.AsyncClient(
            base_url=suite.base_url, headers={"x-popagent-key": KEY}, timeout=60, trust_env=False
        ) as http:
            before = (await http.get("/api/health")).json()
            unanswered = await said(http, "hello there")
            tried = await http.post(f"{CONNECTION}/test", json={"url": model.url, "key": MODEL_KEY})
            revision = (await http.get(CONNECTION)).json()["revision"]
            body = {"revision": revision, "url": model.url, "key": MODEL_KEY}
            saved = (await http.put(CONNECTION, json=body)).json()
            answered = await said(http, "hello again")
            suite.kill("chat")
            await asyncio.to_thread(suite.wait, lambda: is_back(suite), "chat is back", 60)
            told = await asyncio.to_thread(suite.popagent, "models", "connection", "--json")
            after_kill = await said(http, "hello once more")
            after = (await http.get("/api/health")).json()
        written = "".join(path.read_text(errors="replace") for path in (suite.home / "logs").glob("*.log"))

    assert before["ready"]
    [problem] = [each for each in before["problems"] if each["name"] == "model"]
    assert "POPAGENT_MODEL_URL" in problem["fix"]
    assert "No model is connected" in unanswered
    assert (tried.json()["class"], tried.json()["answeredBy"]) == ("ok", "scripted-model")
    assert (saved["source"], saved["keyHint"], saved["lastError"]) == ("page", "7f3a", None)
    assert "again" in answered
    shown = json.loads(told.stdout)
    assert (shown["source"], shown["keyHint"]) == ("page", "7f3a")
    assert "once" in after_kill
    assert after["checks"]["model"] == "ok"
    assert after["details"]["model"] == f"scripted-model, at 127.0.0.1:{model.port}"
    assert MODEL_KEY not in written + tried.text + told.stdout + told.stderr
