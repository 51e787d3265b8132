"""A repository in which several folders of documents have plans of their own."""

import json
from pathlib import Path
from typing import Any

from looping import Night

PLANS = ("docs", "plan", "app1/docs", "app2/docs")
SPEC = """### 1.1.1. Work in {place}

**Status:** 🔵 Planned
**Verification:** `grep -q b {work}`

### 1.1.2. Work more in {place}

**Status:** 🔵 Planned
**Verification:** `grep -q c {work}`
"""


class Folders(Night):
    """Plans in docs, plan, app1/docs and app2/docs."""

    def __init__(self, path: Path) -> None:
        specs = {f"{one}/implementation/1-a/1.1-x.md": SPEC.format(place=one, work="work.txt") for one in PLANS}
        super().__init__(path, **{name.replace("/", "__"): text for name, text in specs.items()})

    def ask(self, *words: str, at: str = "") -> dict[str, Any]:
        """What a command of the loop over tasks prints as a document, in the directory `at`."""
        done = self.room.raymond("task-loop", *words, "--json", cwd=self.path / at)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def refused(self, *words: str, at: str = "") -> str:
        """The error of a command that is refused."""
        done = self.room.raymond(*words, cwd=self.path / at)
        assert (done.returncode, done.stdout) == (2, ""), done.stdout + done.stderr
        return done.stderr
