"""What the command prints arrives whole."""

import io
import sys
from typing import Any, cast

import pytest

from raymond.cli import streams


class Narrow(io.RawIOBase):
    """A pipe that takes ten bytes at once."""

    def __init__(self) -> None:
        self.taken = b""

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.taken += bytes(data[:10])
        return min(10, len(data))


def test_all_of_a_text_is_written_where_python_was_told_not_to_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = Narrow()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(cast(Any, pipe), "utf-8", write_through=True))
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    streams.guard()
    sys.stdout.write("0123456789" * 10)
    sys.stdout.flush()
    assert pipe.taken == b"0123456789" * 10
