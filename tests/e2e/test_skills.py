"""Skills through every service: from a folder to the store, opened in a chat, and back into a folder as they were."""

from __future__ import annotations

from pathlib import Path

from popagent_kit import json
from popagent_kit.ids import new_id
from popagent_testing.model_replies import Reply, call
from tests.suite import Suite
from tests.talk import Talk

AGENT = "orchistrator"
FILE = """---
name: word-of-the-day
description: 'Tell the word of the day: <always> & only from the list.'
metadata:
  version: '1.0'
---

# Word of the day

Look it up in references/words.md.
"""


async def test_a_skill_of_a_folder_is_opened_in_a_chat_and_comes_back_as_it_was(
    suite: Suite, talk: Talk, tmp_path: Path
) -> None:
    folder = tmp_path / "word-of-the-day"
    (folder / "references").mkdir(parents=True)
    (folder / "SKILL.md").write_text(FILE)
    (folder / "references" / "words.md").write_text("Monday: heron\n")
    suite.model.script(
        Reply(tool_calls=(call("skill", name="word-of-the-day"),)),
        Reply(tool_calls=(call("skill_read", skillName="word-of-the-day", path="references/words.md"),)),
        Reply(text="It is heron."),
    )
    before = len(suite.model.requests())
    others = json.loads(suite.popagent("agent-health", "--json").stdout)["skills"]

    added = suite.popagent("skill-import", AGENT, str(folder)).stdout
    answer = await talk.chat("Which word is it?", new_id())
    health = json.loads(suite.popagent("agent-health", "--json").stdout)
    suite.popagent("skill-export", AGENT, str(tmp_path / "out"))
    again = suite.popagent("skill-import", AGENT, str(tmp_path / "out" / "word-of-the-day")).stdout
    suite.popagent("skill-delete", AGENT, "word-of-the-day")
    without = await talk.chat("And now?", new_id())

    assert added == "word-of-the-day: added, 1 reference\n"
    assert answer.text == "It is heron."
    outputs = [part["output"] for part in answer.message["parts"] if part["type"].startswith("tool-skill")]
    assert outputs[0].startswith("# Word of the day\n")
    assert outputs[1] == "Monday: heron"
    assert (health["ok"], health["skills"]) == (True, others + 1)
    assert (tmp_path / "out" / "word-of-the-day" / "SKILL.md").read_text() == FILE
    assert again == "word-of-the-day: unchanged, 1 reference\n"
    told = [request["body"]["messages"][0]["content"] for request in suite.model.requests()[before:]]
    assert "<name>word-of-the-day</name><description>Tell the word of the day: &lt;always&gt; &amp; only" in told[0]
    assert "word-of-the-day" not in told[-1]
    assert without.text
