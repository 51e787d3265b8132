"""A loop in internal mode, and somebody who does its items by hand."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from looping import Night

QUEUE = "1. [VERIFY: sh check.sh] Write the answer\n2. [VERIFY: sh two.sh] Write the other\n"
DONE = "## Summary\nI did it.\n\nITERATION_COMPLETE\n"


class Inside(Night):
    """A repository with two items, and somebody who does them by hand."""

    def __init__(self, path: Path, queue: str = QUEUE, loop: str = "continuous-session", **files: str) -> None:
        super().__init__(path, queue, **{"two.sh": "grep -q 7 two.txt\n", **files})
        self.kind = loop
        self.folder = self.path / ".raymond/work/n"
        """Where the agents of the loop `n` work."""

    def call(self, verb: str, *args: str, said: str | None = None) -> subprocess.CompletedProcess[str]:
        given: dict[str, Any] = {"stdin": subprocess.DEVNULL} if said is None else {"input": said}
        argv = [sys.executable, "-m", "raymond", self.kind, verb, *args]
        return subprocess.run(
            argv, cwd=self.path, env=self.room.environment, capture_output=True, text=True, check=False, **given
        )

    def next(self, *args: str, code: int = 0) -> dict[str, Any]:
        """The document that `next` prints."""
        done = self.call("next", "--json", *args)
        assert done.returncode == code, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def begin(self, *args: str) -> dict[str, Any]:
        """The first item of the loop `n`."""
        return self.next("--start", "--id", "n", *args)

    def work(self, files: dict[str, str]) -> None:
        """Write files where agents work."""
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")

    def record(self, said: str | None = DONE, *args: str, code: int = 0) -> dict[str, Any]:
        """The document that `record` prints."""
        done = self.call("record", "--json", *args, said=said)
        assert done.returncode == code, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def refused(self, verb: str, *args: str, said: str | None = None) -> str:
        """The error of a command that is refused."""
        done = self.call(verb, *args, said=said)
        assert (done.returncode, done.stdout) == (2, ""), done.stdout
        return done.stderr
