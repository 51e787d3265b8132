"""Settings of a loop: what a person says at its start, kept with the run as one of its variables."""

import json
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from raymond.loops.documents import PLANS, RECORDS, SUMMARIES

VARIABLE = "loop"
"""The variable of the run that holds them."""
BRACES = "loop_braces"
"""The one that stands for two opening braces, so that a text with `{{input}}` in it can be handed on."""
SESSION, RALPH, TASKS, STORIES = "continuous-session", "ralph", "task-loop", "story-loop"
UNITS = {SESSION: "session", RALPH: "iteration", TASKS: "task", STORIES: "story"}
"""What each loop counts."""
ON_FAIL = ("skip", "retry", "create-fix-task", "pause")
ON_REPEAT = ("block", "pause")
ON_REVIEW = ("set-aside", "pause")
COMMIT = ("green", "always", "never")
ON_DIRTY = ("snapshot", "ignore")


class Settings(Struct, frozen=True, kw_only=True):
    """What every iteration of a loop needs to know."""

    loop: str = SESSION
    docs: str = "docs"
    """Relative to the directory of the run."""
    most: int = 5
    """Items; 0 for no limit."""
    attempts: int = 2
    on_fail: str = "skip"
    max_failures: int = 3
    on_repeat: str = "block"
    pause: float = 2.0
    pause_on_fail: bool = False
    gate_timeout: float = 600.0
    commits: bool = True
    branch: str = ""
    """The branch that follows the tip; empty for none."""
    way: str = "here"
    """Where agents work."""
    why: str = ""
    """Why not isolated, if they do not."""
    began_on: str = ""
    """The branch that was checked out at the start, if agents work in the checkout."""
    applies: bool = False
    """Whether what counts is brought into the checkout at the end."""
    took: int = 0
    """How many files that were not committed it took along."""
    carry: tuple[str, ...] = ()
    require_verify: bool = False
    strict: bool = False
    """Items that may not mean what their author thinks are passed over."""
    accept_proposed: bool = False
    on_review: str = "set-aside"
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    source: str = ""
    """The session log that the loop began with."""
    closing: str = ""
    """What an agent is asked for at the end, beside the computed summary."""
    prompt: str = ""
    """The file of the plain loop, relative to the directory of the run."""
    gate: str = ""
    until: str = ""
    goal: str = ""
    commit: str = "green"
    pin: str = ""
    """The text of the prompt, if changes of its file do not count."""
    area: str = ""
    """Of the loop over tasks: only those of this area, `1`."""
    task_group: str = ""
    """Only those of this group, `1.4`."""
    task: str = ""
    """Only this one."""
    story: str = ""
    """Of the loop over stories: only this one."""
    stop_on_fail: bool = False
    skip_unverifiable: bool = False
    log_per_task: bool = False
    """Every task writes a session log of its own, instead of one for all."""
    skip_manual: bool = False
    create_tasks: bool = False
    runs_tasks: bool = False
    """Of the loop over stories: the tasks of a story are items of their own, before it."""
    links_tasks: bool = False
    """Of the loop over sessions: items of its queue are done when tasks of specs are."""
    internal: bool = False
    """Its items are done by another program, which asks for each: `next` and `record`."""
    deadline: float = 0.0
    """Of such a loop: start no item after this time (0: no deadline)."""
    asks: bool = False
    """A person at a terminal can judge what no command can check."""
    typed: dict[str, list[str]] = {}
    """The flags that the next loop needs again, and their values as they were typed."""

    @property
    def unit(self) -> str:
        """What it counts."""
        return UNITS.get(self.loop, "item")

    @property
    def approve(self) -> str | None:
        """Who has to answer a question of the loop: in internal mode, a program is there that could."""
        return "person" if self.internal else None

    @property
    def worker(self) -> str:
        """The state in which an agent works on an item."""
        return "LEASE.py" if self.internal else "WORK.md"

    @property
    def owns_plans(self) -> bool:
        """Whether specs and the PRD say what is to be done: agents cannot change them then."""
        return self.loop in (TASKS, STORIES) or self.links_tasks

    @property
    def owned(self) -> tuple[str, ...]:
        """The documents that only Raymond writes while the loop works."""
        if self.loop == RALPH:
            return (SUMMARIES,)
        return (*RECORDS, *PLANS) if self.owns_plans else RECORDS

    @property
    def commits_anything(self) -> bool:
        """Whether it has a branch: a plain loop that commits nothing works in the checkout as it is."""
        return self.loop != RALPH or self.commit != "never"

    def write(self) -> str:
        """As the value of the variable."""
        return json.dumps({key: value for key, value in asdict(self).items() if value != _DEFAULTS[key]})


def read(text: str) -> Settings:
    """The settings in the value of the variable; unknown fields are left out."""
    given: dict[str, Any] = {}
    for key, value in json.loads(text or "{}").items():
        if key in _DEFAULTS:
            given[key] = tuple(value) if isinstance(value, list) else value
    return Settings(**given)


_DEFAULTS: dict[str, Any] = asdict(Settings())
