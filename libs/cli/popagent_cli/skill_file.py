"""SKILL.md of the Agent Skills standard: front matter in YAML, then the instructions; from and to what is stored."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import yaml

from popagent_proto.chat.skills import SkillFields

FILE_NAME: Final = "SKILL.md"
LONGEST_FRONT_MATTER: Final = 20_000
DEEPEST: Final = 10
_FENCE: Final = re.compile(r"^---[ \t]*$", re.M)
# Key of the standard → field on the wire.
KEYS: Final = {
    "name": "name",
    "description": "description",
    "license": "license",
    "compatibility": "compatibility",
    "allowed-tools": "allowedTools",
    "metadata": "metadata",
}


class SkillFileError(ValueError):
    """The text is no SKILL.md; the message says why in one sentence."""


@dataclass(frozen=True)
class SkillFile:
    """What a SKILL.md holds, unchecked: fields as on the wire, and the keys of its front matter that are none."""

    fields: dict[str, Any]
    unknown: list[str]


def parse(text: str) -> SkillFile:
    """Return what the file says.

    Raises:
        SkillFileError: It has no front matter, or one that is not plain keys and texts.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    opening = _FENCE.match(text)
    closing = _FENCE.search(text, opening.end()) if opening else None
    if opening is None or closing is None:
        raise SkillFileError("does not begin with front matter between two lines of ---")
    front = text[opening.end() : closing.start()]
    if len(front) > LONGEST_FRONT_MATTER:
        raise SkillFileError(f"has front matter of {len(front):,} characters, and {LONGEST_FRONT_MATTER:,} is the most")
    found = _mapping(front)
    fields = {KEYS[key]: _text_of(key, value) for key, value in found.items() if key in KEYS and value != ""}
    fields["description"] = str(fields.get("description", "")).strip("\n")
    fields["instructions"] = text[closing.end() :].strip("\n")
    return SkillFile(fields, [key for key in found if key not in KEYS])


def render(skill: SkillFields) -> str:
    """Return the file that says the same; what is not set is not there."""
    wire = skill.wire()
    front = {key: wire[field] for key, field in KEYS.items() if wire[field]}
    head = yaml.safe_dump(front, sort_keys=False, allow_unicode=True, width=120)
    return f"---\n{head}---\n\n{skill.instructions}\n"


Node = str | list[str] | dict[str, str]


def _mapping(text: str) -> dict[str, Node]:
    """Read by events: nothing is built but texts, and an alias, which could stand for a million others, is refused."""
    try:
        events = iter(list(_plain(text)))
    except yaml.YAMLError as error:
        raise SkillFileError(_where(error)) from error
    if not isinstance(next(events, None), yaml.MappingStartEvent):
        raise SkillFileError("has front matter that is not a list of keys and values")
    found: dict[str, Node] = {}
    for key, event in _pairs(events):
        if key in found:
            raise SkillFileError(f"names {key!r} twice in its front matter")
        found[key] = _node(key, event, events) if key in KEYS else _passed_over(event, events)
    if next(events, None) is not None:
        raise SkillFileError("has more than one document in its front matter")
    return found


def _plain(text: str) -> Iterator[yaml.Event]:
    depth = 0
    frame = (yaml.StreamStartEvent, yaml.StreamEndEvent, yaml.DocumentStartEvent, yaml.DocumentEndEvent)
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise SkillFileError("uses anchors or aliases in its front matter; write each value out")
        if getattr(event, "tag", None) is not None:
            raise SkillFileError("uses tags in its front matter; values are plain texts")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:  # read on, the scanner would take the square of the depth
            raise SkillFileError("has front matter that is nested too deep")
        if not isinstance(event, frame):
            yield event


def _pairs(events: Iterator[yaml.Event]) -> Iterator[tuple[str, yaml.Event]]:
    """Yield key and first event of each value, up to the end of the mapping; the rest of a value is the caller's."""
    for key in events:
        if isinstance(key, yaml.MappingEndEvent):
            return
        if not isinstance(key, yaml.ScalarEvent):
            raise SkillFileError("has a key in its front matter that is no text")
        yield key.value, next(events)


def _node(key: str, event: yaml.Event, events: Iterator[yaml.Event]) -> Node:
    if isinstance(event, yaml.ScalarEvent):
        return _scalar(event)
    if isinstance(event, yaml.SequenceStartEvent):
        items: list[str] = []
        for item in events:
            if isinstance(item, yaml.SequenceEndEvent):
                return items
            items.append(_inner(key, item))
    found: dict[str, str] = {}
    for name, item in _pairs(events):
        if name in found:
            raise SkillFileError(f"names {name!r} twice in {key} of its front matter")
        found[name] = _inner(f"{key}.{name}", item)
    return found


def _passed_over(event: yaml.Event, events: Iterator[yaml.Event]) -> Node:
    """Read to the end of a value that has no place here, however deep it is nested."""
    depth = 0
    while True:
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth == 0:
            return ""
        event = next(events)


def _inner(key: str, event: yaml.Event) -> str:
    if not isinstance(event, yaml.ScalarEvent):
        raise SkillFileError(f"has something nested in {key} of its front matter, where only a text can stand")
    return _scalar(event)


def _scalar(event: yaml.ScalarEvent) -> str:
    value: str = event.value
    if event.style is None and value in {"~", "null"}:
        return ""
    return value


def _text_of(key: str, value: Node) -> Any:
    """Return the value as its field takes it; some write allowed-tools as a list."""
    if key == "metadata":
        if not isinstance(value, Mapping):
            raise SkillFileError("has metadata that is not a list of keys and values")
        return value
    if key == "allowed-tools" and isinstance(value, list):
        return " ".join(value)
    if not isinstance(value, str):
        raise SkillFileError(f"has a {key} that is no text")
    return value


def _where(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or "it holds a character that YAML does not allow"
    line = f" in line {mark.line + 1}" if mark is not None else ""
    return f"has front matter that is not YAML{line} ({problem}); a value with a colon needs quotes around it"
