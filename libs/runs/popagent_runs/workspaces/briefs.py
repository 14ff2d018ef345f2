"""The brief of a workspace's checkout, remembered while nothing that it tells has changed."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from popagent_runs.workspaces.folder import FolderId, folder_id
from popagent_sandbox.brief import RepoBrief, brief_signature, repo_brief
from popagent_sandbox.contained import ContainedFolder

MOST_REMEMBERED: Final = 64
# What git could not tell, it may be able to tell later without any file having changed.
PROBLEM_REMEMBERED_S: Final = 60.0


@dataclass(frozen=True)
class _Remembered:
    signature: tuple[object, ...]
    brief: RepoBrief
    until: float


class Briefs:
    """Remembers by folder; asking again costs some dozen looks at files, about 0.05 ms, and starts no program."""

    def __init__(self) -> None:
        self._known: OrderedDict[FolderId, _Remembered] = OrderedDict()
        self._asking = threading.Lock()

    async def of(self, folder: ContainedFolder) -> RepoBrief:
        """Return the brief of what the folder holds now, without what was changed since the last commit."""
        known = self._current(folder_id(folder), brief_signature(folder))
        return known if known is not None else await asyncio.to_thread(self._found_out, folder)

    def _current(self, folder: FolderId, signature: tuple[object, ...]) -> RepoBrief | None:
        known = self._known.get(folder)
        if known is None or known.signature != signature or known.until < time.monotonic():
            return None
        return known.brief

    def _found_out(self, folder: ContainedFolder) -> RepoBrief:
        """Many turns may begin at once in a workspace: the first one asks git, the others wait for its answer."""
        with self._asking:
            # Taken before git is asked: what changes meanwhile makes the next turn ask again.
            key, signature = folder_id(folder), brief_signature(folder)
            known = self._current(key, signature)
            if known is not None:
                return known
            brief = repo_brief(folder, changes=False)
            until = float("inf") if brief.problem is None else time.monotonic() + PROBLEM_REMEMBERED_S
            self._known[key] = _Remembered(signature, brief, until)
            self._known.move_to_end(key)
            while len(self._known) > MOST_REMEMBERED:
                self._known.popitem(last=False)
            return brief


BRIEFS: Final = Briefs()
