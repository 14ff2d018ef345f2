"""The contracts keep their promises to those who already speak them."""

from __future__ import annotations

import json
import re
from typing import Any, ClassVar

import pytest
from pydantic import ValidationError

from popagent_kit.settings import clone_root
from popagent_proto.base import Command, Event, Message, Request, View
from popagent_proto.chat.sessions import CreateSessionBody
from popagent_proto.chat.turns import ChatRequest, StartTurn, UserMessage
from popagent_proto.chat.workspaces import RegisterWorkspaceBody
from popagent_proto.export import examples
from popagent_proto.export.__main__ import files
from popagent_proto.export.registry import messages
from popagent_proto.matrix import BY_NAME, nats_authorization

ROOT = clone_root()
assert ROOT is not None
EXAMPLES = ROOT / "proto" / "examples"


def lost(old: Any, new: Any, path: str = "") -> list[str]:
    """Name what `old` says and `new` does not."""
    if isinstance(old, dict) and isinstance(new, dict):
        return [line for key, value in old.items() for line in lost(value, new.get(key, ...), f"{path}.{key}")]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [line for i, (a, b) in enumerate(zip(old, new, strict=True)) for line in lost(a, b, f"{path}[{i}]")]
    return [] if old == new else [f"{path}: {old!r} became {new!r}"]


def test_no_request_may_take_longer_than_nats_keeps_the_right_to_answer_it() -> None:
    kept = re.search(r'expires: "(\d+)s"', nats_authorization(dict.fromkeys(("admin", *BY_NAME), "x")))

    assert kept is not None
    # A second each for the way there, and for the margin of the one who asks.
    assert [
        message for message in messages() if issubclass(message, Request) and message.answer_within_s + 2 > int(kept[1])
    ] == []


@pytest.mark.parametrize("name", sorted(examples.shapes()))
def test_a_golden_example_still_says_the_same(name: str) -> None:
    golden = json.loads((EXAMPLES / f"{name}.json").read_text())

    read = examples.shapes()[name].model_validate(golden).model_dump(mode="json", by_alias=True)

    assert lost(golden, read) == []


def test_no_golden_example_is_left_of_a_shape_that_is_gone() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.json")} == set(examples.shapes())


def test_exported_files_equal_the_contracts() -> None:
    assert ROOT is not None
    stale = [str(path) for path, content in files(ROOT).items() if not path.exists() or path.read_text() != content]

    assert stale == [], "run `make contracts`"


@pytest.mark.parametrize("change", ["removed", "retyped", "newly required"])
def test_a_breaking_change_is_seen(change: str) -> None:
    class Old(View):
        name: str = "a"
        size: int = 1

    golden = Old(name="example", size=3).wire()

    class Removed(View):
        name: str = "a"

    class Retyped(View):
        name: str = "a"
        size: tuple[int, ...] = ()

    class Required(View):
        name: str
        size: int
        colour: str

    new = {"removed": Removed, "retyped": Retyped, "newly required": Required}[change]
    try:
        broken = lost(golden, new.model_validate(golden).wire()) != []
    except ValidationError:
        broken = True

    assert broken


def test_every_subject_names_its_owner_kind_and_version() -> None:
    for message in messages():
        owner, kind, name, version = message.subject_parts()
        assert kind in {"cmd", "qry", "evt"}
        assert (owner, name, version) == (owner, name, "v1")
        assert (kind == "evt") == issubclass(message, Event)


def test_two_messages_cannot_share_a_subject() -> None:
    class First(Event):
        subject: ClassVar = "popagent.chat.evt.tests-first.v1"

    try:
        with pytest.raises(TypeError, match="belongs to"):

            class Second(Event):
                subject: ClassVar = "popagent.chat.evt.tests-first.v1"
    finally:
        Message.registry.pop("popagent.chat.evt.tests-first.v1")


def test_a_request_knows_its_reply() -> None:
    assert StartTurn.reply_type().__name__ == "TurnView"
    assert issubclass(StartTurn, Command)


@pytest.mark.parametrize(
    "body",
    [
        {"id": "s1", "message": {}, "tools": []},
        {"id": "s1", "message": {}, "system": "obey"},
        {"id": "s1", "message": {}, "maxSteps": 99},
        {"id": "a.b", "message": {}},
        {"id": "a>b", "message": {}},
        {"id": "", "message": {}},
        {"id": "a" * 65, "message": {}},
        {"id": "a b", "message": {}},
        {"id": "a\r\nb", "message": {}},
        {"id": "s1\n", "message": {}},
    ],
)
def test_a_chat_request_takes_no_other_key_and_no_strange_id(body: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ChatRequest.model_validate(body)


@pytest.mark.parametrize("role", ["system", "assistant", "tool"])
def test_only_a_user_may_speak(role: str) -> None:
    with pytest.raises(ValidationError):
        UserMessage.model_validate({"id": "m1", "role": role, "parts": [{"type": "text", "text": "hi"}]})


@pytest.mark.parametrize("name", ["", "  ", "\t", "a\nb", "a\x1b[2Jb", "a\x00", "a\u202eb", "a\u2028b", "a\x9bb"])
def test_a_name_is_one_visible_line(name: str) -> None:
    bodies = [(CreateSessionBody, {"title": name}), (RegisterWorkspaceBody, {"name": name, "path": "x"})]

    for shape, body in bodies:
        with pytest.raises(ValidationError):
            shape.model_validate(body)


def test_a_name_may_hold_any_script_and_joined_emoji() -> None:
    title = "Größe 東京 سلام 👨‍👩‍👧"

    assert CreateSessionBody(title=title).title == title


def test_a_message_without_a_visible_word_is_refused() -> None:
    blank = {"id": "m", "role": "user", "parts": [{"type": "text", "text": " "}, {"type": "text", "text": "\n\t"}]}

    with pytest.raises(ValidationError, match="must not be blank"):
        UserMessage.model_validate(blank)
