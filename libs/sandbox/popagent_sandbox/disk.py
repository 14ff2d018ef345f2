"""Room on the disk of a workspace that commands leave to everything else that lies there, databases among it."""

from __future__ import annotations

import os
from typing import Final

RESERVED_BYTES: Final = 1 << 30
RESERVED_FILES: Final = 10_000
# Of a small disk not more than a twentieth is kept.
LARGEST_SHARE: Final = 20
# On a disk that is nearly full already a command may still do something, as to clean up.
LEAST_BYTES: Final = 64 << 20
LEAST_FILES: Final = 1_000


class DiskRoom:
    """Watches the disk of the folder behind `folder_fd`, which stays the caller's, from now on."""

    def __init__(self, folder_fd: int) -> None:
        self._fd = os.dup(folder_fd)
        now = os.fstatvfs(self._fd)
        self._least_bytes = min(
            RESERVED_BYTES,
            now.f_blocks * now.f_frsize // LARGEST_SHARE,
            now.f_bavail * now.f_frsize - LEAST_BYTES,
        )
        # File systems without a fixed number of files say that they have none.
        self._least_files = min(RESERVED_FILES, now.f_files // LARGEST_SHARE, now.f_favail - LEAST_FILES)

    def close(self) -> None:
        """Let go of the folder."""
        os.close(self._fd)

    def problem(self) -> str | None:
        """Return what is short now, None while there is enough."""
        now = os.fstatvfs(self._fd)
        if now.f_bavail * now.f_frsize < self._least_bytes:
            return f"less than {self._least_bytes >> 20:,} MiB were left on the disk of the workspace"
        if now.f_favail < self._least_files:
            return f"less than {self._least_files:,} more files fitted on the disk of the workspace"
        return None
