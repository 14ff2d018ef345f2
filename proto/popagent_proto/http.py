"""Shapes that exist on HTTP only."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import AfterValidator, Field, SecretStr

from popagent_kit.errors import InvalidInputError
from popagent_kit.text import fits_a_header
from popagent_proto.base import Text, View, Wire
from popagent_proto.chat.hooks import HookChanges, HookFields
from popagent_proto.chat.models import LONGEST_URL
from popagent_proto.chat.workspaces import CloneWorkspaceBody, RegisterWorkspaceBody, WorkspaceName
from popagent_proto.common import HealthView


class AddWorkspaceBody(Wire):
    """Either a directory below the workspace root, or the address of a repository to clone there."""

    name: WorkspaceName | None = Field(default=None, description="Needed with a path; else that of the directory.")
    path: Text | None = Field(
        default=None, min_length=1, max_length=1_024, description="Relative to the workspace root; it must exist."
    )
    url: Text | None = Field(
        default=None,
        min_length=1,
        max_length=LONGEST_URL,
        description="https, ssh, git, or user@host:path, without a password or token.",
    )
    directory: Text | None = Field(
        default=None, min_length=1, max_length=100, description="One plain name; by default the last part of the url."
    )

    def meant(self) -> RegisterWorkspaceBody | CloneWorkspaceBody:
        """Return what is asked for.

        Raises:
            InvalidInputError: Both, or neither, or half of it.
        """
        if self.url is not None:
            if self.path is not None:
                raise InvalidInputError("path: give a path or a url, not both", field="path")
            return CloneWorkspaceBody(url=self.url, name=self.name, directory=self.directory)
        if self.directory is not None:
            raise InvalidInputError("directory: goes with a url; a path is registered where it is", field="directory")
        if self.path is None:
            raise InvalidInputError("path: is required, or a url to clone", field="path")
        if self.name is None:
            raise InvalidInputError("name: is required", field="name")
        return RegisterWorkspaceBody(name=self.name, path=self.path)


class ErrorBody(View):
    """Every refusal; on conflicts the stored object stands beside these."""

    error: str = Field(description="One sentence for a person.")
    code: str
    field: str | None = None


class HealthProblem(View):
    """Something that is not well: what, what works all the same, what to do."""

    name: str = Field(description="The check, or the service that does not answer.")
    services: list[str] = Field(description="Who noticed.")
    reason: str
    still_works: str
    fix: str
    decisive: bool = Field(description="It alone makes the suite not ready.")


class SuiteHealthView(View):
    """`ready` needs the application's and the observability PostgreSQL; models and search never count."""

    ready: bool
    checks: dict[str, str] = Field(description="`ok`, `not set up: …`, or why not; `model` and `search` never count.")
    services: list[HealthView]
    details: dict[str, str] = Field(
        default_factory=dict, description="What a check found, in words; `model`: which one answers."
    )
    problems: list[HealthProblem] = Field(default_factory=list, description="What is not well, the gravest first.")


LONGEST_KEY: Final = 4_096


def _can_be_sent(key: SecretStr) -> SecretStr:
    text = key.get_secret_value()
    if not 1 <= len(text) <= LONGEST_KEY or not fits_a_header(text):
        raise ValueError(f"must be 1 to {LONGEST_KEY:,} printable ASCII characters without blanks at its ends")
    return key


Key = Annotated[SecretStr, AfterValidator(_can_be_sent)]


class ModelConnectionBody(Wire):
    """A server to use from the next run on. Its key is sealed at the door; at most its last four characters show."""

    revision: int = Field(ge=0, description="The one you saw last.")
    url: Text = Field(
        min_length=1,
        max_length=LONGEST_URL,
        description="Base URL of an OpenAI-compatible server, http or https, without a key in it.",
    )
    key: Key | None = Field(default=None, description="Absent: keep the stored one, for the same server. Null: none.")


class ModelConnectionTestBody(Wire):
    """A server to try. Nothing is stored."""

    url: Text = Field(min_length=1, max_length=LONGEST_URL)
    key: Key | None = Field(
        default=None, description="Absent: the connection's own, sent to its own server only. Null: none."
    )
    model: Text | None = Field(
        default=None, min_length=1, max_length=200, description="Asked for a few words; by default one of its list."
    )


class CreateHookBody(HookFields):
    """A hook. Its secret is sealed at the door and never told again."""

    secret: Key | None = Field(default=None, description="Signs each request; 16 characters at least.")


class PatchHookBody(HookChanges):
    """Changes of a hook."""

    secret: Key | None = Field(default=None, description="Absent: keep the stored one. Null: none.")
