from __future__ import annotations

import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from popagent_kit.errors import (
    ConfigurationError,
    ConflictError,
    DependencyError,
    ForbiddenError,
    InvalidInputError,
    NoAnswerError,
    RateLimitedError,
    UnavailableError,
)
from popagent_models.errors import (
    ContextOverflowError,
    ModelConfigurationError,
    ModelProviderError,
    ModelRateLimitedError,
    ModelTimeoutError,
)
from popagent_proto.task_runner.tasks import ERROR_CHARACTERS, TaskErrorClass
from popagent_sandbox.errors import PathRefusedError
from popagent_task_runner.tasks.causes import cause_of, sentence_of, storable
from popagent_task_runner.tasks.executor import TaskFailedError


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (TaskFailedError("browser", "The page was gone."), "browser"),
        (ModelTimeoutError(), "provider"),
        (ModelProviderError(), "provider"),
        (ModelRateLimitedError(), "rate-limit"),
        (ModelConfigurationError(), "configuration"),
        (ContextOverflowError(), "validation"),
        (RateLimitedError(), "rate-limit"),
        (UnavailableError(), "infrastructure"),
        (NoAnswerError(), "infrastructure"),
        (DependencyError(), "infrastructure"),
        (ConfigurationError(), "configuration"),
        (InvalidInputError(), "validation"),
        (ForbiddenError(), "permission"),
        (PathRefusedError(), "permission"),
        (ConflictError(), "unknown"),
        (asyncpg.PostgresConnectionError(), "database"),
        (TimeoutError(), "infrastructure"),
        (ConnectionResetError(), "infrastructure"),
        (ValueError("x"), "unknown"),
    ],
)
def test_the_class_of_an_error_is_what_ended_the_attempt(error: Exception, cause: TaskErrorClass) -> None:
    assert cause_of(error) == cause


def test_a_sentence_is_bounded_and_without_secrets() -> None:
    text = sentence_of(ValueError("the key sk-abcdefghijklmnop\n" + "x" * 5_000))

    assert "abcdefghijklmnop" not in text
    assert "\n" not in text
    assert len(text) <= ERROR_CHARACTERS
    assert sentence_of(TaskFailedError("timeout", "Too long.")) == "Too long."


@given(st.text(st.characters(codec=None)), st.integers(0, 50))
def test_what_is_stored_can_be_stored(text: str, limit: int) -> None:
    kept = storable(text, limit)

    assert len(kept) <= limit
    assert "\x00" not in kept
    assert kept.encode().decode() == kept
