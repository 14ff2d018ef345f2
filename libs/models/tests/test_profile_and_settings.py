from __future__ import annotations

import pytest

from popagent_kit.errors import ConfigurationError
from popagent_models.admission import Limit, parse_limits
from popagent_models.endpoint import endpoint
from popagent_models.errors import ModelConfigurationError
from popagent_models.profile import EMBEDDED_MODEL, profile_for
from popagent_models.settings import ModelSettings
from popagent_telemetry import redact


def test_the_embedded_model_gets_few_tools_short_outputs_and_patience() -> None:
    profile = profile_for(EMBEDDED_MODEL, 32_768)

    assert (profile.context, profile.max_tools, profile.tool_output_tokens) == (8_192, 4, 600)
    assert (profile.idle_timeout_s, profile.reply_tokens) == (300, 700)


def test_only_the_embedded_model_is_told_to_be_brief() -> None:
    assert "your own words" in profile_for(EMBEDDED_MODEL).guidance
    assert profile_for("never-heard-of", 4_096).guidance == ""


def test_a_big_model_is_not_held_back_and_the_catalogue_goes_before_the_name() -> None:
    assert profile_for("anthropic/claude-sonnet-5").context == 200_000
    assert profile_for("anthropic/claude-sonnet-5", 50_000).context == 50_000
    assert profile_for("anthropic/claude-sonnet-5").max_tools == 128
    assert profile_for("never-heard-of").context == 32_768
    assert profile_for("never-heard-of", 4_096).max_tools == 8


@pytest.mark.parametrize(
    ("typed", "url"),
    [
        ("http://localhost:11434", "http://localhost:11434/v1"),
        ("http://localhost:11434/", "http://localhost:11434/v1"),
        ("http://localhost:11434/v1/", "http://localhost:11434/v1"),
        (" https://host/api/openai/v1/chat/completions ", "https://host/api/openai/v1"),
    ],
)
def test_an_endpoint_is_what_a_person_meant(typed: str, url: str) -> None:
    assert endpoint(typed).url == url


@pytest.mark.parametrize(
    "typed", [None, "", "localhost:11434", "ftp://x", "http://", "http://u:p@host", "http://h:99999"]
)
def test_an_endpoint_that_cannot_be_used_says_so_without_repeating_it(typed: str | None) -> None:
    with pytest.raises(ModelConfigurationError) as refused:
        endpoint(typed)

    assert "POPAGENT_MODEL_URL" in refused.value.message
    assert "u:p" not in refused.value.message


def test_the_key_is_shown_nowhere() -> None:
    at = endpoint("http://host/v1", "very-secret-model-key")

    assert "very-secret" not in repr(at)
    assert "very-secret" not in redact("key is very-secret-model-key")
    assert (endpoint("http://127.0.0.1:1").is_loopback, at.is_loopback) == (True, False)


def test_settings_are_read_and_bounded() -> None:
    settings = ModelSettings.load(environ={"POPAGENT_MODEL_URL": "http://h/v1", "POPAGENT_MODEL_IDLE_TIMEOUT_S": "7"})

    assert (settings.model_url, settings.idle_timeout_s, settings.header_timeout_s) == ("http://h/v1", 7, None)
    with pytest.raises(ConfigurationError, match="POPAGENT_MODEL_CONNECT_TIMEOUT_S"):
        ModelSettings.load(environ={"POPAGENT_MODEL_CONNECT_TIMEOUT_S": "0"})


def test_limits_are_patterns_with_numbers() -> None:
    assert parse_limits("a=1, ollama/*=2,") == (Limit("a", 1), Limit("ollama/*", 2))
    assert parse_limits("") == ()
    for wrong in ("a", "=1", "a=0", "a=65", "a=x", "a=-1", "a=²"):
        with pytest.raises(ConfigurationError, match="POPAGENT_MODEL_LIMITS"):
            parse_limits(wrong)
