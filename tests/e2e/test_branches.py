"""One chat over HTTP, as two tabs with the stock client's body see it: forked, searched, switched, exported."""

from __future__ import annotations

import time
from typing import Any

import pytest

from popagent_kit.ids import new_id
from popagent_testing.model_replies import Reply
from tests.suite import Suite
from tests.talk import Answer, Talk, TurnStream

pytestmark = pytest.mark.timeout(120)


def user(text: str) -> dict[str, Any]:
    return {"id": new_id(), "role": "user", "parts": [{"type": "text", "text": text}]}


async def posted(talk: Talk, body: dict[str, Any]) -> Answer:
    async with talk.http.stream("POST", "/api/chat", json=body) as response:
        return await TurnStream(response, time.perf_counter()).read()


async def test_two_tabs_of_one_chat_never_write_into_a_branch_that_they_do_not_show(suite: Suite, talk: Talk) -> None:
    session, here = new_id(), "/api/sessions"
    suite.model.script(Reply(text="A heron."), Reply(text="No, a gull."), Reply(text="Its colour is grey."))
    question = user("Which bird stands there?")
    first = (await posted(talk, {"id": session, "messages": [question]})).message
    shown_by_the_other_tab = [question, first]
    again = {"id": session, "messages": [question], "trigger": "regenerate-message", "messageId": first["id"]}
    second = (await posted(talk, again)).message

    stale = {"id": session, "messages": [*shown_by_the_other_tab, user("What colour?")], "trigger": "submit-message"}
    refused = await posted(talk, stale)
    found = (await talk.http.get(here, params={"q": "HERON bird"})).json()["items"]
    [by_text] = (await talk.http.get(here, params={"q": "gull"})).json()["items"]
    view = (await talk.http.get(f"{here}/{session}")).json()
    switched = await talk.http.put(
        f"{here}/{session}/head", json={"revision": view["revision"], "messageId": first["id"]}
    )
    answered = await posted(talk, stale)
    exported = (await talk.http.get(f"{here}/{session}/export")).text

    assert (refused.status, refused.body["code"], refused.body["session"]["id"]) == (409, "branch_changed", session)
    assert found == []
    assert (by_text["id"], by_text["match"]["messageId"]) == (session, second["id"])
    assert view["messages"][1]["metadata"]["siblings"] == [first["id"], second["id"]]
    assert switched.json()["messages"][-1]["id"] == first["id"]
    assert answered.text == "Its colour is grey."
    assert "A heron." in exported
    assert "gull" not in exported
    assert exported.endswith("Its colour is grey.\n")
