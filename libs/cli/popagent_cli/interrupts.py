"""Ctrl-C while an answer comes: once stops the answer on the server, twice leaves."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Final, Self

from popagent_cli.client import Client
from popagent_cli.errors import CliError, RefusedError
from popagent_cli.screen import Screen

ATTEMPTS: Final = 20
AGAIN_S: Final = 0.25


class StopOnInterrupt:
    """Context manager for the main thread; the stream is read on, so that its proper end is seen."""

    def __init__(self, client: Client, session: str, screen: Screen) -> None:
        self._client = client
        self._session = session
        self._screen = screen
        self._over = threading.Event()
        self.pressed = False

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGINT, self._on_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        signal.signal(signal.SIGINT, self._before)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        if self.pressed:
            raise KeyboardInterrupt
        self.pressed = True
        # Not here: the interrupted code may hold the screen or the connection.
        threading.Thread(target=self._stop, daemon=True).start()

    def _stop(self) -> None:
        self._screen.note("stopping; Ctrl-C again leaves at once")
        for _ in range(ATTEMPTS):
            try:
                self._client.send("POST", f"/api/chat/{self._session}/stop")
            except RefusedError as error:
                if error.status != 404:
                    self._screen.note(error.message)
                    return
                # The turn may be about to begin.
                if self._over.wait(AGAIN_S):
                    return
            except CliError as error:
                if not self._over.is_set():
                    self._screen.note(error.message)
                return
            else:
                return
