"""Tools and their use as plain text, for a model that was not trained to call any.

The text of a message never depends on what follows it, so that the next step's prompt begins with this step's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

Message = Mapping[str, Any]

RULES: Final = """\
# Tools
{tools}

# Form
You write one JSON object and nothing else:
{{"tool": NAME, "arguments": {{...}}}} to look something up or do something; its result is then shown to you.
{{"tool": "{none}", "answer": TEXT}} to reply to the user, in Markdown.

You know nothing about the user, their files, their plans or today's world except what the messages and results here \
say. Use a tool to find out or to get something done; answer from its result. Use {none} for greetings, thanks, \
arithmetic and common knowledge, and as soon as a result has what you need. When asked to explain or describe \
something that lies where a tool can look, look first."""

# Said after the decision to use no tool. The answer is asked for as plain text, since inside of JSON a small model
# does not know when to stop. Stands at the very end, so that all before it is found in the prompt cache.
ANSWER_NOW: Final = "Reply to me now, in Markdown, without JSON."
# A question that stands last and says "read this file" makes a small model recite the file; a quoted one does not.
ANSWER_THIS: Final = 'I asked: "{question}"'
THIS_NOW: Final = "Answer me now in Markdown, without JSON."
# Of a demand that a small model writes down once more behind its answer, where that is over.
ECHO_CHARACTERS: Final = 28
# After a result a small model would rather look again than answer.
DECIDE_NOW: Final = """\
To answer: {question}
If the results above say enough, write {{"tool": "{none}"}} now. Never repeat a call."""
ANSWER_AS_JSON: Final = "Now answer this as JSON: {question}"
# Of a long message the end is repeated: what is asked comes last.
QUESTION_CHARACTERS: Final = 400
# What popagent itself says beside a person's message. It tells how to answer, so it is repeated last of all.
BESIDE: Final = re.compile(r"\A(<context>\n.*?\n</context>)\s*", re.DOTALL)


def text_of(content: Any) -> str:
    """Return a message's content as text: a string, null, or an array of text parts."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if part.get("type") == "text")


def fold_system(messages: Sequence[Message]) -> tuple[str, list[Message]]:
    """Return the system and developer texts joined, and the messages without them."""
    leading = [text_of(m.get("content")) for m in messages if m.get("role") in ("system", "developer")]
    rest = [m for m in messages if m.get("role") not in ("system", "developer")]
    return "\n\n".join(text for text in leading if text), rest


def plain_messages(messages: Sequence[Message]) -> list[dict[str, str]]:
    """Return the conversation with one system message at most and text contents."""
    system, rest = fold_system(messages)
    head = [{"role": "system", "content": system}] if system else []
    return head + [{"role": str(m["role"]), "content": text_of(m.get("content"))} for m in rest]


def decision_messages(
    messages: Sequence[Message], tools: Sequence[Mapping[str, Any]], no_tool: str
) -> list[dict[str, str]]:
    """Return the conversation as decisions and results, with the tools explained in the system message."""
    system, rest = fold_system(messages)
    rules = RULES.format(tools="\n".join(describe(tool) for tool in tools), none=no_tool) if tools else ""
    head = "\n\n".join(text for text in (system, rules) if text)
    out = [{"role": "system", "content": head}] if head else []
    results = {str(m.get("tool_call_id")): text_of(m.get("content")) for m in rest if m.get("role") == "tool"}
    for message in rest:
        role = message.get("role")
        if role == "user":
            out.append({"role": "user", "content": text_of(message.get("content"))})
        elif role == "assistant":
            out.extend(_assistant(message, results, no_tool))
    return out


def deciding_messages(told: Sequence[Message], messages: Sequence[Message], no_tool: str) -> list[dict[str, str]]:
    """Return `told` (see `decision_messages`); after a result, with what was asked and the way out."""
    out = [dict(message) for message in told]
    if messages[-1].get("role") == "tool":
        demand = DECIDE_NOW.format(question=_question(messages)[0], none=no_tool)
        out[-1]["content"] = f"{out[-1]['content']}\n\n{demand}"
    return out


def answer_messages(told: Sequence[Message], messages: Sequence[Message], *, as_json: bool) -> list[dict[str, str]]:
    """Return `told` (see `decision_messages`) with the demand for an answer to the last of `messages`."""
    out = [dict(message) for message in told]
    if out[-1]["role"] != "user":
        out.append({"role": "user", "content": ""})
    out[-1]["content"] = f"{out[-1]['content']}\n\n{_demand(messages, as_json=as_json)}".lstrip()
    return out


def echoes(messages: Sequence[Message]) -> list[str]:
    """Return the beginnings of the lines that end an answer to `messages` when the model writes them."""
    lines = (ANSWER_NOW, ANSWER_THIS.format(question=_question(messages)[0]).splitlines()[0], THIS_NOW)
    return [line[:ECHO_CHARACTERS] for line in lines]


def _demand(messages: Sequence[Message], *, as_json: bool) -> str:
    question, beside = _question(messages)
    if as_json:
        return ANSWER_AS_JSON.format(question=question)
    # After a result the question is some way back, and forgotten.
    if messages[-1].get("role") == "user":
        return ANSWER_NOW
    again = beside if len(beside) <= QUESTION_CHARACTERS else ""
    return "\n".join(filter(None, (ANSWER_THIS.format(question=question), THIS_NOW, again)))


def _question(messages: Sequence[Message]) -> tuple[str, str]:
    """Return the end of what was asked last, and what stood beside it."""
    asked = next((text_of(m.get("content")) for m in reversed(messages) if m.get("role") == "user"), "")
    found = BESIDE.match(asked)
    beside, said = (found[1], asked[found.end() :]) if found else ("", asked)
    return said[-QUESTION_CHARACTERS:], beside


def _assistant(message: Message, results: Mapping[str, str], no_tool: str) -> list[dict[str, str]]:
    said = text_of(message.get("content"))
    calls = message.get("tool_calls") or []
    out = []
    if said or not calls:
        out.append({"role": "assistant", "content": compact({"tool": no_tool, "answer": said})})
    for call in calls:
        name, arguments = call["function"]["name"], arguments_of(call)
        out.append({"role": "assistant", "content": compact({"tool": name, "arguments": arguments})})
        result = results.get(str(call.get("id")), "The call was not carried out.")
        out.append({"role": "user", "content": f"Result of {name} {compact(arguments)}:\n{result}"})
    return out


def arguments_of(call: Mapping[str, Any]) -> Any:
    """Return the arguments of an earlier call; a text that is no JSON stays a text."""
    text = call["function"].get("arguments") or "{}"
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def compact(value: Any) -> str:
    """Return JSON spaced as the model itself writes it, so that its own words are found again in the prompt cache."""
    return json.dumps(value, ensure_ascii=False)


def describe(tool: Mapping[str, Any]) -> str:
    """Return a tool as a signature, its purpose, and a line for each parameter that has a description."""
    schema = tool.get("parameters") or {}
    properties = schema.get("properties") or {}
    required = set(schema.get("required") or ())
    signature = ", ".join(
        f"{name}{'' if name in required else '?'}: {_kind(inner)}" for name, inner in properties.items()
    )
    purpose = " ".join(str(tool.get("description") or "").split())
    lines = [f"Tool {tool['name']}({signature}): {purpose}".rstrip(" :")]
    for name, inner in properties.items():
        about = " ".join(str(inner.get("description") or "").split()) if isinstance(inner, Mapping) else ""
        if about:
            lines.append(f"  {name}: {about}")
    return "\n".join(lines)


def _kind(schema: Any) -> str:
    if not isinstance(schema, Mapping):
        return "any"
    if "const" in schema:
        return compact(schema["const"])
    if "enum" in schema:
        return " | ".join(compact(value) for value in schema["enum"])
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return " | ".join(dict.fromkeys(_kind(inner) for inner in schema[union]))
    kind = schema.get("type", "any")
    if isinstance(kind, list):
        return " | ".join(str(one) for one in kind)
    if kind == "array":
        return f"array of {_kind(schema.get('items'))}"
    return str(kind)
