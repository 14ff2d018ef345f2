from __future__ import annotations

from popagent_kit.ids import new_id
from popagent_testing.model_server import ModelServer, Reply
from services.chat.tests.running import Chat, Door


async def test_a_turn_streams_its_answer_and_history_shows_the_same(chat: Chat, door: Door, model: ModelServer) -> None:
    session = new_id()
    model.script(Reply(text="Herons stand still."))

    turn = await door.say("What do herons do?", session)

    assert turn.view.created
    assert turn.ending == {"type": "finish", "finishReason": "stop"}
    assert turn.text == "Herons stand still."
    view = await door.session(session)
    assert view.messages[1] == turn.message
    assert view.running_turn_id is None
