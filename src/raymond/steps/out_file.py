"""The file in which a script may say where it goes, apart from what it prints: `RAYMOND_OUT`."""

import contextlib
import os

from raymond.system.files import contents

VARIABLE = "RAYMOND_OUT"
LARGEST = 1 << 20
"""Bytes: it holds a transition, and is read in one piece."""


class OutFile:
    """One script's file. It is not made in advance: most scripts never write one, and each would pay for it."""

    def __init__(self, spool: str, step: int) -> None:
        # Nobody can write it before the script has started, nor a script that came before.
        self.path = f"{spool}/{step}.{os.urandom(6).hex()}.out"

    def take(self) -> str | None:
        """After the script ended: what it wrote, and the file is gone; None when there is none.

        Raises OSError when it is a link, no file, empty or too long.
        """
        if not os.path.lexists(self.path):
            return None
        data = contents(self.path, LARGEST + 1)
        with contextlib.suppress(OSError):
            os.unlink(self.path)
        if len(data) > LARGEST:
            raise OSError(0, f"it is longer than {LARGEST >> 20} MiB", self.path)
        if not data.strip():
            raise OSError(0, "it is empty", self.path)
        return data.decode("utf-8", "replace")
