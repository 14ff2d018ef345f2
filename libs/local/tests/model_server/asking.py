"""What is asked at the door, and how its answers are read."""

from __future__ import annotations

import json
from typing import Any

import httpx2

KEY = "the-key-of-this-test"
READ = {
    "type": "function",
    "function": {
        "name": "read",
        "description": "Read a file.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    },
}
ASK = {"model": "tiny", "messages": [{"role": "user", "content": "Hi"}]}


async def stream_of(client: httpx2.AsyncClient, body: dict[str, Any]) -> tuple[list[dict[str, Any]], str]:
    async with client.stream("POST", "/v1/chat/completions", json={**body, "stream": True}) as response:
        assert response.status_code == 200
        text = (await response.aread()).decode()
    lines = [line.removeprefix("data: ") for line in text.split("\n\n") if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"], text


def said(events: list[dict[str, Any]]) -> str:
    return "".join(c["delta"].get("content") or "" for event in events for c in event["choices"])
