"""A repository with a plan, over which loops run for the tests: a PRD with stories, and a spec with their tasks."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from looping import Night
from running import Ran

SPEC = "docs/implementation/1-core/1.4-answers.md"
TASKS = """### 1.4.1. Write the answer

**Status:** 🔵 Planned
**Verification:** `sh check.sh`

### 1.4.2. Explain it

**Status:** 🔵 Planned
**Verification:** `grep -q because why.txt`
"""
PRD = """# Product

## User Stories

### US-1: The answer

**Verification:** `sh check.sh`
**Implemented by:** 1.4.1

### US-2: The reason

**Verification:** tasks
**Implemented by:** 1.4.2
"""
STATUS = "docs/prd-status.json"
BOTH = "echo 42 > answer.txt; echo because > why.txt; echo ITERATION_COMPLETE"


class Planned(Night):
    """A night over a plan."""

    def __init__(
        self, path: Path, agent: str = BOTH, *, spec: str = TASKS, prd: str = PRD, files: Mapping[str, str] = {}
    ) -> None:
        super().__init__(path, agent=agent, **{SPEC.replace("/", "__"): spec, "docs__prd.md": prd, **files})
        done = self.room.raymond("prd", "status-init", "--yes")
        assert done.returncode == 0, done.stderr
        self.commit("status")

    def tasks(self, *args: str, verb: str = "start") -> Ran:
        return self.loop(*args, verb=verb, loop="task-loop")

    def stories(self, *args: str, verb: str = "start") -> Ran:
        return self.loop(*args, verb=verb, loop="story-loop")

    @property
    def spec(self) -> str:
        return self.text(SPEC)

    @property
    def status(self) -> dict[str, Any]:
        """The stories by id, as the status file has them."""
        return {one["id"]: one for one in json.loads(self.text(STATUS))["stories"]}

    def fields(self, id: str) -> dict[str, str]:
        """The fields of a task, as the spec has them."""
        section = re.split(r"(?m)^### ", self.spec[self.spec.index(f"### {id}. ") + 4 :])[0]
        return dict(re.findall(r"(?m)^\*\*([A-Z][A-Za-z ]+):\*\* ?(.*)$", section))
