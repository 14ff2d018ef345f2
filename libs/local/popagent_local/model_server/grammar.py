"""Grammars in the language of the installed llama.cpp, which depends on how it was built."""

from __future__ import annotations

import functools
from typing import Any, Final, Protocol

from popagent_local.model_server.shim import BadRequestError

# An answer must not begin as a call or a fenced one does; the model has just seen several.
TEXT_LARK: Final = "%llguidance {}\nstart: TEXT\nTEXT: /[^{`\\s](.|\\n)*/\n"
TEXT_GBNF: Final = "root ::= [^{` \\t\\r\\n] [^\\x00]*\n"


class Grammars(Protocol):
    """What makes grammars."""

    def of_schema(self, schema: dict[str, Any]) -> str:
        """Return the grammar of JSON of this schema.

        Raises:
            BadRequestError: The schema cannot be made a grammar.
        """

    def of_text(self) -> str:
        """Return the grammar of a text that is no call."""


class LlamaGrammars:
    """The grammars of `xllamacpp`."""

    def of_schema(self, schema: dict[str, Any]) -> str:
        """Return the grammar of `schema`."""
        import xllamacpp  # noqa: PLC0415 (a native library that tests of the door do not need)

        try:
            return str(xllamacpp.json_schema_to_grammar(schema))
        except (RuntimeError, ValueError, TypeError) as error:
            raise BadRequestError(f"A tool's schema cannot be used: {error}", field="tools") from error

    @functools.cached_property
    def _text(self) -> str:
        return TEXT_LARK if self.of_schema({"type": "object"}).startswith("%llguidance") else TEXT_GBNF

    def of_text(self) -> str:
        """Return the grammar of a text that begins with neither a brace nor a fence."""
        return self._text
