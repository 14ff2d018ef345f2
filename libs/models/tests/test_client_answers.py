from __future__ import annotations

import orjson
import pytest

from popagent_models.client import ModelClient
from popagent_models.endpoint import endpoint
from popagent_models.errors import ModelConfigurationError, ModelRequestError
from popagent_models.events import Usage
from popagent_testing.asking import ask, request
from popagent_testing.model_server import ModelServer, Reply, ScriptedCall

TOOL = {"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}


async def test_text_reasoning_calls_and_usage_arrive_in_order(client: ModelClient, server: ModelServer) -> None:
    call = ScriptedCall("read", '{"path": "README.md"}', "call-1")
    server.script(Reply(text="Let me look.", reasoning="hm, files", tool_calls=(call,), cached_tokens=1))

    heard = await ask(client)

    assert (heard.reasoning, heard.text) == ("hm, files", "Let me look.")
    assert heard.calls == [("call-1", "read", '{"path": "README.md"}')]
    assert heard.usage == Usage(2, 11, cached_tokens=1, reasoning_tokens=2)
    assert heard.finish == "tool-calls"


@pytest.mark.parametrize("style", ["fragments", "whole", "no-index", "no-id", "id-repeated", "object-arguments"])
async def test_every_style_of_tool_call_gives_the_same_calls(
    client: ModelClient, server: ModelServer, style: str
) -> None:
    calls = (ScriptedCall("read", '{"path":"a b"}', "one"), ScriptedCall("grep", '{"pattern":"x"}', "two"))
    server.script(Reply(tool_calls=calls, tool_style=style))

    heard = await ask(client)

    assert [(name, orjson.loads(arguments)) for _, name, arguments in heard.calls] == [
        ("read", {"path": "a b"}),
        ("grep", {"pattern": "x"}),
    ]
    assert len({call_id for call_id, _, _ in heard.calls}) == 2
    assert heard.finish == "tool-calls"


async def test_the_legacy_function_call_is_ignored(client: ModelClient, server: ModelServer) -> None:
    server.script(Reply(text="no", tool_calls=(ScriptedCall("read"),), tool_style="legacy", finish="function_call"))

    heard = await ask(client)

    assert (heard.calls, heard.text, heard.finish) == ([], "no", "stop")


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
async def test_reasoning_is_found_under_both_names(client: ModelClient, server: ModelServer, field: str) -> None:
    server.script(Reply(text="4", reasoning="two and two", reasoning_field=field))

    heard = await ask(client)

    assert (heard.reasoning, heard.text) == ("two and two", "4")


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
async def test_lines_and_characters_may_be_split_anywhere(
    client: ModelClient, server: ModelServer, newline: str
) -> None:
    server.script(Reply(text="Grüße, 世界 🎉!", dribble_bytes=1, newline=newline))

    heard = await ask(client)

    assert heard.text == "Grüße, 世界 🎉!"


async def test_missing_usage_is_estimated(client: ModelClient, server: ModelServer) -> None:
    server.script(Reply(text="x" * 40, usage=False))

    heard = await ask(client, request("y" * 80))

    assert heard.usage == Usage(20, 10, estimated=True)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("content_filter", "content-filter"),
        ("MAX_TOKENS", "length"),
        ("odd", "stop"),
    ],
)
async def test_finish_reasons_are_translated(client: ModelClient, server: ModelServer, given: str, reason: str) -> None:
    server.script(Reply(text="a", finish=given))

    assert (await ask(client)).finish == reason


async def test_stop_behind_a_tool_call_means_the_call(client: ModelClient, server: ModelServer) -> None:
    server.script(Reply(tool_calls=(ScriptedCall("read"),), finish="stop"))

    assert (await ask(client)).finish == "tool-calls"


async def test_what_is_sent_is_the_request_and_nothing_about_this_machine(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "foreign-key")
    monkeypatch.setenv("OPENAI_ORG_ID", "foreign-org")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Foreign: yes")
    keyed, keyless = ModelClient(endpoint(server.url, "our-own-key")), ModelClient(endpoint(server.url))

    await ask(keyed, request(tools=[TOOL], tool_choice="read", max_tokens=5, temperature=0.0))
    await ask(keyless)

    with_key, without_key = server.requests
    assert set(with_key.headers) == {
        "host",
        "content-length",
        "content-type",
        "accept",
        "accept-encoding",
        "user-agent",
        "authorization",
    }
    assert with_key.headers["authorization"] == "Bearer our-own-key"
    assert "authorization" not in without_key.headers
    assert with_key.body["tool_choice"] == {"type": "function", "function": {"name": "read"}}
    assert (with_key.body["stream"], with_key.body["max_tokens"], with_key.body["temperature"]) == (True, 5, 0.0)
    assert "tools" not in without_key.body
    for client in (keyed, keyless):
        await client.close()


async def test_a_server_that_refuses_stream_options_is_asked_without_from_then_on() -> None:
    with ModelServer(refuse_stream_options=True) as server:
        client = ModelClient(endpoint(server.url))

        first, second = await ask(client), await ask(client)

        assert (first.text, second.text) == ("hello there", "hello there")
        assert first.usage is not None
        assert first.usage.estimated
        assert ["stream_options" in entry.body for entry in server.requests] == [True, False, False]
        await client.close()


async def test_a_model_that_renamed_max_tokens_or_has_no_temperature_is_asked_in_its_way(
    client: ModelClient, server: ModelServer
) -> None:
    server.script(
        Reply(status=400, error="Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."),
        Reply(status=400, error="Unsupported value: 'temperature' does not support 0.2"),
        Reply(text="fine"),
    )

    heard = await ask(client, request(max_tokens=7, temperature=0.2))

    assert heard.text == "fine"
    assert server.requests[-1].body["max_completion_tokens"] == 7
    assert not {"temperature", "max_tokens"} & set(server.requests[-1].body)


async def test_a_wrong_key_names_the_setting() -> None:
    with ModelServer(key="right") as server:
        client = ModelClient(endpoint(server.url, "wrong-key"))

        heard = await ask(client)

        assert isinstance(heard.error, ModelConfigurationError)
        assert "POPAGENT_MODEL_KEY" in heard.error.message
        await client.close()


async def test_a_conversation_that_json_cannot_hold_is_refused_before_it_is_sent(
    client: ModelClient, server: ModelServer
) -> None:
    heard = await ask(client, request("half \ud83d"))

    assert isinstance(heard.error, ModelRequestError)
    assert server.requests == []
