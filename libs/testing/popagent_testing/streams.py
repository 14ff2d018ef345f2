"""Random legal UI message streams, by rules of their own, so that state machine and reducer can be held to them."""

from __future__ import annotations

from random import Random
from typing import Any, Final

import orjson

from popagent_uistream import chunks
from popagent_uistream.chunks import Chunk

_WORDS: Final = ["alpha ", "βήτα ", "\n\n", "🙂", '"quoted" ', "\\", "data: x\n\n", "", "0", "ünï"]
_VALUES: Final = [None, True, 0, 17, 2.5, "", "text 🙂", [], {}, ["a", [1, {"b": None}]], {"k": {"n": [1, 2]}, "e": ""}]
_TOOLS: Final = [("read", False), ("agent-coder", False), ("mcp_search", True)]


class _Writer:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.sent: list[Chunk] = []
        self.in_step = False
        self.texts: list[tuple[str, str]] = []
        self.calls: dict[str, dict[str, Any]] = {}
        self.counter = 0

    def text(self) -> str:
        return "".join(self.random.choices(_WORDS, k=self.random.randint(0, 3)))

    def optional(self, **values: Any) -> dict[str, Any]:
        return {name: value for name, value in values.items() if self.random.random() < 0.25}

    def provider(self) -> dict[str, Any]:
        return self.optional(provider_metadata={"any": {"n": self.random.randint(0, 9)}})

    def metadata(self) -> dict[str, Any]:
        return {
            self.random.choice(["usage", "turnId", "nested"]): self.random.choice(
                [1, "x", {"in": self.random.randint(0, 9)}, {"out": {"deep": self.random.randint(0, 9)}}, [1, 2], None]
            )
        }

    def new_id(self) -> str:
        self.counter += 1
        return f"id{self.counter}"

    def move(self) -> None:
        """Append one legal chunk or one legal group."""
        moves = [self.stand_alone, self.open_text, self.open_call, self.step]
        moves += [self.grow_text, self.grow_text, self.grow_text] if self.texts else []
        moves += [self.advance_call, self.advance_call] if self.calls else []
        self.random.choice(moves)()

    def stand_alone(self) -> None:
        name = self.random.choice(["agentActivity", "plan"])
        kind = self.random.randrange(6)
        value = self.random.choice(_VALUES)
        if kind == 0:
            chunk = chunks.source_url(self.new_id(), "https://example.org/", **self.optional(title="T"))
        elif kind == 1:
            chunk = chunks.source_document(
                self.new_id(), "application/pdf", "Doc", **self.optional(filename="d.pdf"), **self.provider()
            )
        elif kind == 2:
            chunk = chunks.file("data:text/plain;base64,eA==", "text/plain", **self.provider())
        elif kind == 3:
            chunk = chunks.message_metadata(self.random.choice([None, self.metadata()]))
        else:
            transient = self.random.random() < 0.3
            chunk = chunks.data(
                name, value, **self.optional(data_id=f"d{self.random.randint(0, 2)}"), transient=transient
            )
        self.sent.append(chunk)

    def open_text(self) -> None:
        kind, part_id = self.random.choice(["text", "reasoning"]), f"t{self.random.randint(0, 3)}"
        if (kind, part_id) not in self.texts:
            build = chunks.text_start if kind == "text" else chunks.reasoning_start
            self.sent.append(build(part_id, **self.provider()))
            self.texts.append((kind, part_id))

    def grow_text(self) -> None:
        kind, part_id = self.random.choice(self.texts)
        if self.random.random() < 0.75:
            delta = chunks.text_delta if kind == "text" else chunks.reasoning_delta
            self.sent.append(delta(part_id, self.text(), **self.provider()))
        else:
            self.close_text(kind, part_id)

    def close_text(self, kind: str, part_id: str) -> None:
        end = chunks.text_end if kind == "text" else chunks.reasoning_end
        self.sent.append(end(part_id, **self.provider()))
        self.texts.remove((kind, part_id))

    def open_call(self) -> None:
        name, dynamic = self.random.choice(_TOOLS)
        call_id = self.new_id()
        common = self.optional(title="Title", provider_executed=True, tool_metadata={"m": 1}) | self.provider()
        value = {"path": self.text(), "n": self.random.choice(_VALUES)}
        way = self.random.randrange(3)
        if way == 0:
            self.sent.append(chunks.tool_input_available(call_id, name, value, dynamic=dynamic, **common))
        elif way == 1:
            self.sent.append(chunks.tool_input_error(call_id, name, value, "no such path", dynamic=dynamic, **common))
        else:
            self.sent.append(chunks.tool_input_start(call_id, name, dynamic=dynamic, **common))
        if way != 1:
            self.calls[call_id] = {
                "name": name,
                "dynamic": dynamic,
                "input": value,
                "raw": None if way == 0 else orjson.dumps(value).decode(),
            }

    def advance_call(self) -> None:
        call_id = self.random.choice(list(self.calls))
        call = self.calls[call_id]
        if call["raw"] is None:
            self.settle(call_id, preliminary=self.random.random() < 0.4)
        elif call["raw"] and self.random.random() < 0.7:
            cut = self.random.randint(0, len(call["raw"]))
            self.sent.append(chunks.tool_input_delta(call_id, call["raw"][:cut]))
            call["raw"] = call["raw"][cut:]
        else:
            self.end_input(call_id)

    def end_input(self, call_id: str) -> None:
        call = self.calls[call_id]
        arguments = (call_id, call["name"], call["input"])
        if self.random.random() < 0.2:
            self.sent.append(chunks.tool_input_error(*arguments, "refused", dynamic=call["dynamic"], **self.provider()))
            del self.calls[call_id]
        elif self.random.random() < 0.1:
            self.sent.append(chunks.tool_output_error(call_id, "interrupted"))
            del self.calls[call_id]
        else:
            self.sent.append(chunks.tool_input_available(*arguments, dynamic=call["dynamic"], **self.provider()))
            call["raw"] = None

    def settle(self, call_id: str, *, preliminary: bool) -> None:
        common = self.provider() | self.optional(tool_metadata={"r": 2})
        if not preliminary and self.random.random() < 0.3:
            self.sent.append(chunks.tool_output_error(call_id, "failed", **common))
        else:
            output = self.random.choice(_VALUES)
            self.sent.append(chunks.tool_output_available(call_id, output, preliminary=preliminary, **common))
        if not preliminary:
            del self.calls[call_id]

    def settle_inputs(self) -> None:
        for call_id, call in list(self.calls.items()):
            if call["raw"] is not None:
                self.end_input(call_id)

    def close_all(self) -> None:
        for kind, part_id in list(self.texts):
            self.close_text(kind, part_id)
        self.settle_inputs()

    def step(self) -> None:
        self.close_all()
        self.sent.append(chunks.finish_step() if self.in_step else chunks.start_step())
        self.in_step = not self.in_step

    def end(self) -> None:
        self.close_all()
        for call_id in list(self.calls):
            self.settle(call_id, preliminary=False)
        if self.in_step:
            self.step()
        self.sent.append(
            self.random.choice(
                [
                    chunks.finish(finish_reason="stop", message_metadata=self.metadata()),
                    chunks.finish(),
                    chunks.abort(reason="stopped"),
                    chunks.abort(),
                ]
            )
        )


def random_stream(random: Random, *, moves: int = 40) -> list[Chunk]:
    """Return a whole legal stream, from start to finish or abort, of about `moves` chunks."""
    writer = _Writer(random)
    writer.sent.append(chunks.start(message_id="m1", **writer.optional(message_metadata=writer.metadata())))
    for _ in range(moves):
        writer.move()
    writer.end()
    return writer.sent
