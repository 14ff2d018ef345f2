"""Query parameters of reads whose message also carries an id from the path."""

from __future__ import annotations

from typing import Annotated, Final, get_args

from pydantic import AfterValidator, Field

from popagent_kit.ids import Id
from popagent_proto.base import Text, Wire
from popagent_proto.chat.channels import MOST_MESSAGES
from popagent_proto.chat.sessions import SearchText
from popagent_proto.docs_indexer.imports import FileName, SourceName
from popagent_proto.docs_indexer.pages import PathText
from popagent_proto.docs_indexer.tree import MOST_LISTED
from popagent_proto.task_runner.activity import RECORDS_KEPT
from popagent_proto.task_runner.tasks import ListTasks, TaskSource, TaskState


class SessionPage(Wire):
    """Which messages of a session; without a cursor the newest. `around` is the id of a message."""

    before: Text | None = Field(default=None, max_length=200)
    after: Text | None = Field(default=None, max_length=200)
    around: Text | None = Field(default=None, max_length=200)
    limit: int = Field(default=100, ge=1, le=200)


class Page(Wire):
    """Which part of a list; the cursor is the one that the page before answered, and the first page needs none."""

    cursor: Text | None = Field(default=None, max_length=200)
    limit: int = Field(default=50, ge=1, le=200)


class MessageSearch(Page):
    """What is searched in a session."""

    q: SearchText


class HookRunPage(Page):
    """Which runs of hooks; without a cursor from the first on, with `turnId` those of one turn or one attempt."""

    turn_id: Id | None = None


STATES: Final[tuple[TaskState, ...]] = get_args(TaskState)


def _known_states(text: str) -> str:
    unknown = [name for name in text.split(",") if name not in STATES]
    if unknown:
        raise ValueError(f"must be states separated by commas; there are {', '.join(STATES)}")
    return text


class TaskFilter(Page):
    """Which tasks; without a cursor the newest."""

    state: (
        Annotated[
            Text, Field(max_length=200, description="Any of these, separated by commas."), AfterValidator(_known_states)
        ]
        | None
    ) = None
    workspace_id: Id | None = None
    schedule_id: Id | None = None
    source: TaskSource | None = None
    q: Text | None = Field(default=None, min_length=1, max_length=200, description="Text in the title, in any case.")

    def query(self) -> ListTasks:
        """Return the question to the owner."""
        states = None if self.state is None else [state for state in STATES if state in self.state.split(",")]
        return ListTasks(state=states, **self.model_dump(exclude={"state"}))


class TaskRecords(Wire):
    """How many of the newest records of a task's transcript; 0 for none."""

    limit: int = Field(default=RECORDS_KEPT, ge=0, le=RECORDS_KEPT)


class TranscriptRange(Wire):
    """Which records of a transcript: those before `before`, a `seq`, or those written since the revision `after`."""

    before: int | None = Field(default=None, ge=0, le=2**62)
    after: int | None = Field(default=None, ge=0, le=2**62)
    limit: int = Field(default=RECORDS_KEPT, ge=1, le=RECORDS_KEPT)


class ChannelPage(Wire):
    """Which messages of a channel; without `beforeSeq` the newest, with `threadId` those of one thread."""

    before_seq: int | None = Field(default=None, ge=0, le=2**62)
    thread_id: Id | None = None
    limit: int = Field(default=50, ge=1, le=MOST_MESSAGES)


class DocsPart(Wire):
    """Which part of a tree: all of it or what is below `folder`, from a cursor on."""

    folder: PathText | None = None
    cursor: Text | None = Field(default=None, max_length=4_096)
    limit: int = Field(default=MOST_LISTED, ge=1, le=MOST_LISTED)


class ImportPlace(Wire):
    """What is imported, where it comes from, and the folder that it goes into."""

    name: FileName
    source: SourceName | None = None
    into: PathText | None = None
