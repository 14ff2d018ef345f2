from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, BaseModel, Field, ValidationError
from pydantic.alias_generators import to_camel

from popagent_kit.ids import Id
from popagent_kit.invalid import explained


def _no_stars(text: str) -> str:
    if "*" in text:
        raise ValueError("must not contain a star")
    return text


Text = Annotated[str, AfterValidator(_no_stars)]


class Part(BaseModel):
    text: Text = Field(min_length=1, max_length=3)


class Order(BaseModel, extra="forbid", alias_generator=to_camel):
    most_steps: int | None = Field(default=None, ge=1, le=128)
    least: float = Field(default=1, gt=0)
    done: bool = False
    name: Annotated[Text, Field(max_length=200)] | None = None
    kind: Literal["a", "b"] = "a"
    ref: Id = "x"
    parts: list[Part] = Field(default_factory=list, max_length=2)
    tags: list[Annotated[str, Field(max_length=5)]] | None = None
    notes: dict[Annotated[Text, Field(min_length=1)], Annotated[str, Field(min_length=1, max_length=4)]] | None = None


def said(value: Any, model: Any = Order) -> tuple[str | None, str]:
    with pytest.raises(ValidationError) as caught:
        Order.model_validate(value, strict=True)
    return explained(caught.value.errors()[0], model)


@pytest.mark.parametrize(
    ("value", "field", "sentence"),
    [
        ({"mostSteps": 0}, "mostSteps", "mostSteps must be between 1 and 128"),
        ({"mostSteps": 129}, "mostSteps", "mostSteps must be between 1 and 128"),
        ({"mostSteps": "1"}, "mostSteps", "mostSteps must be a whole number"),
        ({"mostSteps": True}, "mostSteps", "mostSteps must be a whole number"),
        ({"least": 0}, "least", "least must be more than 0"),
        ({"least": "x"}, "least", "least must be a number"),
        ({"done": 1}, "done", "done must be true or false"),
        ({"name": 5}, "name", "name must be text"),
        ({"name": "x" * 201}, "name", "name must have at most 200 characters"),
        ({"name": "*"}, "name", "name must not contain a star"),
        ({"kind": "c"}, "kind", "kind must be 'a' or 'b'"),
        ({"ref": "a b"}, "ref", "ref must be an id: 1 to 64 letters, digits, - or _"),
        ({"ref": "x" * 65}, "ref", "ref must be an id: 1 to 64 letters, digits, - or _"),
        ({"parts": {}}, "parts", "parts must be a list"),
        ({"parts": [{"text": "a"}] * 3}, "parts", "parts must have at most 2 items"),
        ({"parts": [{"text": ""}]}, "parts.0.text", "parts.0.text must have between 1 and 3 characters"),
        ({"parts": [{}]}, "parts.0.text", "parts.0.text is required"),
        ({"parts": [5]}, "parts.0", "parts.0 must be an object"),
        ({"tags": ["123456"]}, "tags.0", "tags.0 must have at most 5 characters"),
        ({"notes": {"a.b": "12345"}}, "notes.a.b", "notes.a.b must have between 1 and 4 characters"),
        ({"notes": {"../*": "1"}}, "notes", "notes: the name “../*” must not contain a star"),
        ({"notes": {"": "1"}}, "notes", "notes: the name “” must have at least 1 character"),
        ({"[key]": 1}, "[key]", "[key] is not accepted here"),
        ({"unknown\n": 1}, "unknown", "unknown is not accepted here"),
        ([], None, "the body must be an object"),
    ],
)
def test_every_kind_of_wrong_value_is_told_with_its_whole_bound(value: Any, field: str | None, sentence: str) -> None:
    assert said(value) == (field, sentence)


def test_without_the_model_the_bound_that_was_passed_is_told() -> None:
    assert said({"mostSteps": 129}, None) == ("mostSteps", "mostSteps must be at most 128")


def test_a_model_inside_of_something_is_named_with_where_it_lies() -> None:
    with pytest.raises(ValidationError) as caught:
        Part.model_validate({"text": "long"})

    found = explained(caught.value.errors()[0], Part, below=("message", "parts", 3))

    assert found == ("message.parts.3.text", "message.parts.3.text must have between 1 and 3 characters")
