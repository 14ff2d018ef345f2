"""The chat service in this process, wired as its host wires it, and what a door does with it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import pytest

from popagent_bus import Bus
from popagent_bus.live import END, LivePublisher, LiveReader
from popagent_chat.app import build
from popagent_chat.deps import ChatDeps
from popagent_chat.settings import ChatSettings
from popagent_db.pool import Pool, open_pool
from popagent_host import Service
from popagent_host.health import Health
from popagent_kit.errors import AppError
from popagent_kit.ids import new_id
from popagent_proto import matrix
from popagent_proto.chat.sessions import GetSession, SessionView
from popagent_proto.chat.turns import SnapshotTurn, StartTurn, TextPart, TurnView, UserMessage
from popagent_rows.leased import Holder
from popagent_rows.outbox import Outbox
from popagent_rows.pulse import Pulse
from popagent_testing.suite_bus import PASSWORDS
from popagent_uistream.chunks import Chunk
from popagent_uistream.parse import parse
from popagent_uistream.reducer import MessageReducer, client_view
from popagent_uistream.state import StreamState


@dataclass
class Chat:
    """A started service; `stop` ends it as SIGTERM would."""

    service: Service[ChatSettings]
    deps: ChatDeps
    closing: AsyncExitStack

    @property
    def pool(self) -> Pool:
        return self.service.pool

    async def stop(self) -> None:
        await self.closing.aclose()


async def start_chat(dsn: str, nats_url: str, root: Path, **settings: Any) -> Chat:
    """Start the service; the model's address comes from the environment."""
    values = {"workspace_root": root, "stop_grace_s": 0.0, **settings}
    closing = AsyncExitStack()
    pool = await open_pool(dsn, application_name="popagent-chat", max_size=8)
    closing.push_async_callback(pool.close)
    bus = await Bus.connect(nats_url, service="chat", user=matrix.BY_NAME["chat"].role, password=PASSWORDS["chat"])
    closing.push_async_callback(bus.drain)
    pulse = Pulse(pool, period_s=0.2)
    pulse.start()
    closing.push_async_callback(pulse.stop)
    outbox = Outbox(pool, bus.publish)
    outbox.start(pulse)
    closing.push_async_callback(outbox.stop)
    service: Service[ChatSettings] = Service(
        "chat",
        ChatSettings.for_service("chat").model_validate(values),
        pool,
        bus,
        outbox,
        pulse,
        Holder.of_this_process(),
        Health("chat", "test"),
        closing,
        asyncio.get_running_loop().create_future(),
    )
    await build(service)
    assert service.served is not None
    await bus.serve(service.served.handlers, service.served.deps)
    closing.push_async_callback(bus.stop_serving)
    return Chat(service, service.served.deps, closing)


def user_message(text: str, message_id: str | None = None) -> UserMessage:
    return UserMessage(id=message_id or new_id(), role="user", parts=[TextPart(type="text", text=text)])


@dataclass
class Watched:
    """One watcher of a turn; every chunk is checked against the legal order as it comes."""

    reader: LiveReader
    view: TurnView
    chunks: list[Chunk] = field(default_factory=list)
    order: StreamState = field(default_factory=StreamState)
    reducer: MessageReducer = field(default_factory=MessageReducer)
    ended_at: float = 0.0

    @property
    def message(self) -> dict[str, Any]:
        """What a client has made of the chunks."""
        return client_view(self.reducer.message)

    @property
    def text(self) -> str:
        return "".join(part["text"] for part in self.reducer.message["parts"] if part["type"] == "text")

    @property
    def ending(self) -> Chunk:
        return self.chunks[-1]

    def take(self, data: bytes) -> None:
        for chunk in parse(data):
            self.order.accept(chunk)
            self.reducer.apply(chunk)
            self.chunks.append(chunk)

    async def read(self, until: str | None = None, timeout_s: float = 20.0) -> Self:
        """Read to the end, or until the answer holds the text `until`, then close the subscription at the end."""
        async with asyncio.timeout(timeout_s):
            while not self.order.ended and not (until is not None and until in self.text):
                frame = await self.reader.next(timeout_s)
                if frame is None:
                    assert self.reader.ended, "no frame came"
                    break
                self.take(frame.data)
                if frame.flag == END:
                    self.ended_at = time.monotonic()
                    await self.reader.close()
                    break
        return self


@dataclass
class Door:
    """What the gateway does: subscribes, asks, reads frames."""

    bus: Bus

    async def ask(self, message: Any, timeout_s: float = 12.0) -> Any:
        return await self.bus.ask(message, timeout_s=timeout_s, patience_s=1)

    async def start(self, text: str | None, session: str, **fields: Any) -> Watched:
        """Start a turn and watch it from its first chunk."""
        turn_id = fields.pop("turn_id", None) or new_id()
        message_id = fields.pop("id", None)
        message = None if text is None else user_message(text, message_id)
        reader = LiveReader(self.bus, live_subject(turn_id), replay=False)
        await reader.open()
        try:
            view = await self.ask(StartTurn(turn_id=turn_id, session_id=session, message=message, **fields))
        except BaseException:
            await reader.close()
            raise
        return Watched(reader, view)

    async def say(self, text: str | None, session: str, **fields: Any) -> Watched:
        """Start a turn and read it to its end."""
        return await (await self.start(text, session, **fields)).read()

    async def join(self, session: str, turn_id: str | None = None) -> Watched:
        """Watch a turn as somebody who comes later."""
        snapshot = await self.ask(SnapshotTurn(session_id=session, turn_id=turn_id))
        reader = LiveReader(self.bus, live_subject(snapshot.turn_id), snapshot.next_chunk)
        view = TurnView(
            turn_id=snapshot.turn_id,
            session_id=session,
            message_id=snapshot.message_id,
            state=snapshot.state,
            created=False,
        )
        watched = Watched(reader, view)
        watched.take(snapshot.sse.encode())
        if not watched.order.ended:
            await reader.open()
        return watched

    async def session(self, session: str) -> SessionView:
        view: SessionView = await self.ask(GetSession(session_id=session))
        return view

    async def stored(self, session: str) -> list[dict[str, Any]]:
        return (await self.session(session)).messages


async def refusal(work: Awaitable[Any]) -> AppError:
    """Return why it is refused."""
    with pytest.raises(AppError) as refused:
        await work
    return refused.value


def live_subject(turn_id: str) -> str:
    return matrix.live_subject("chat", "turns", turn_id)


__all__ = ["Chat", "Door", "LivePublisher", "Watched", "live_subject", "refusal", "start_chat", "user_message"]
