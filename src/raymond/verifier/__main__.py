"""The process: an assignment on stdin, what happens as JSON lines on stdout."""

import os
import signal
import sys

import msgspec

from raymond.verifier.assignment import Assignment, Told
from raymond.verifier.gate import verify


def main() -> None:
    """Do what stdin says. Whoever started us may end us at any time: the check ends with us."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    given = msgspec.json.decode(sys.stdin.buffer.read(), type=Assignment)
    out = os.dup(1)
    os.dup2(2, 1)

    def tell(what: Told) -> None:
        data = msgspec.json.encode(what) + b"\n"
        while data:
            data = data[os.write(out, data) :]

    tell(verify(given, tell))


if __name__ == "__main__":
    main()
