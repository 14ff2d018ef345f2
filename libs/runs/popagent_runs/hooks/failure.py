"""Why a hook gave no answer that counts."""

from __future__ import annotations


class HookFailedError(Exception):
    """There is no usable answer; the message goes on after "It", and `output` is what came all the same."""

    def __init__(self, message: str, output: str = "") -> None:
        super().__init__(message)
        self.output = output
