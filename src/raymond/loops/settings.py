"""Settings of a loop: what a person says at its start, kept with the run as one of its variables."""

import json
from typing import Annotated, Any

from msgspec import Struct
from msgspec.structs import asdict

from raymond.control.settings import CHECKS, COUNT, DURATION, GIT, LIMITS, LIST, PERIOD, SWITCH, TASK, TEXT, Row, choice
from raymond.loops.documents import PLANS, RECORDS, SUMMARIES

VARIABLE = "loop"
"""The variable of the run that holds them."""
BRACES = "loop_braces"
"""The one that stands for two opening braces, so that a text with `{{input}}` in it can be handed on."""
SESSION, RALPH, TASKS, STORIES = "continuous-session", "ralph", "task-loop", "story-loop"
UNITS = {SESSION: "session", RALPH: "iteration", TASKS: "task", STORIES: "story"}
"""What each loop counts."""
ON_FAIL = ("skip", "retry", "create-fix-task", "pause")
ON_DIRTY = ("snapshot", "ignore")
_ITEMS, _ALL = (SESSION, TASKS, STORIES), (SESSION, TASKS, STORIES, RALPH)
_ON_FAIL, _ON_REPEAT = choice(*ON_FAIL), choice("block", "pause")


class Settings(Struct, frozen=True, kw_only=True):
    """What every iteration of a loop needs to know. A row says what a person sets, and in which loops."""

    loop: str = SESSION
    prompt: str = ""
    """The file of the plain loop, relative to the directory of the run."""
    pin: str = ""
    """The text of the prompt, if changes of its file do not count."""
    gates: Annotated[
        tuple[str, ...],
        Row(
            "An iteration counts only when this is green.",
            *(LIST, CHECKS),
            flag="--gate",
            metavar="CMD",
            often=True,
            where=(RALPH,),
        ),
    ] = ()
    until: Annotated[
        str, Row("Done when the agent says <promise>TEXT</promise>.", TEXT, TASK, often=True, where=(RALPH,))
    ] = ""
    goal: Annotated[
        str,
        Row("Done when a small model judges that this is met.", TEXT, TASK, metavar="CONDITION", where=(RALPH,)),
    ] = ""
    commit: Annotated[
        str,
        Row("Iterations to commit; always: red ones, too.", choice("green", "always", "never"), GIT, where=(RALPH,)),
    ] = "green"
    area: Annotated[str, Row("Only tasks of this area, e.g. 1.", TEXT, TASK, metavar="N", where=(TASKS,))] = ""
    task_group: Annotated[
        str, Row("Only tasks of this group, e.g. 1.4.", TEXT, TASK, metavar="N.M", where=(TASKS,))
    ] = ""
    task: Annotated[
        str,
        Row("Only this task, e.g. 1.4.1, and what repairs it.", TEXT, TASK, metavar="ID", often=True, where=(TASKS,)),
    ] = ""
    story: Annotated[
        str, Row("Only this story, e.g. US-1.", TEXT, TASK, metavar="ID", often=True, where=(STORIES,))
    ] = ""
    source: Annotated[
        str,
        Row(
            "Begin with the queue of this session log, not of the newest.",
            *(TEXT, TASK),
            flag="--from-session",
            metavar="FILE",
            where=(SESSION,),
        ),
    ] = ""
    """The session log that the loop began with."""
    require_verify: Annotated[bool, Row("Pass over items without a check.", SWITCH, TASK, where=(SESSION,))] = False
    skip_unverifiable: Annotated[
        bool, Row("Pass over tasks that no command verifies.", SWITCH, TASK, where=(TASKS,))
    ] = False
    skip_manual: Annotated[
        bool, Row("Pass over stories that a person has to judge.", SWITCH, TASK, where=(STORIES,))
    ] = False
    create_tasks: Annotated[
        bool, Row("Let an agent propose tasks for a story that has none.", SWITCH, TASK, where=(STORIES,))
    ] = False
    runs_tasks: Annotated[
        bool,
        Row("Do the tasks of a story first, one by one.", SWITCH, TASK, flag="--task-loop", where=(STORIES,)),
    ] = False
    """The tasks of a story are items of their own, before it."""
    log_per_task: Annotated[
        bool,
        Row(
            "Write a session log for each task, not one for all.",
            *(SWITCH, TASK),
            flag="--session-per-task",
            where=(TASKS,),
        ),
    ] = False
    stop_on_fail: Annotated[bool, Row("End the loop when a task fails.", SWITCH, LIMITS, where=(TASKS,))] = False
    docs: Annotated[str, Row("The folder of session logs and records.", TEXT, TASK, metavar="DIR", where=_ALL)] = "docs"
    """Relative to the directory of the run."""
    most: int = 5
    """Items; 0 for no limit."""
    attempts: Annotated[int, Row("Fresh sessions for an item.", COUNT, LIMITS, where=_ITEMS)] = 2
    on_fail: Annotated[
        str, Row("What follows an item that used up its attempts.", _ON_FAIL, LIMITS, often=True, where=_ITEMS)
    ] = "skip"
    pause_on_fail: Annotated[
        bool, Row("Ask a person whether to continue after a failure.", SWITCH, LIMITS, where=_ALL)
    ] = False
    max_failures: Annotated[
        int, Row("Failures of an item in a row until --on-repeat applies.", COUNT, LIMITS, where=_ALL)
    ] = 3
    on_repeat: Annotated[
        str, Row("What follows an item that fails again and again.", _ON_REPEAT, LIMITS, where=_ITEMS)
    ] = "block"
    pause: Annotated[float, Row("Time between two items.", DURATION, LIMITS, where=_ALL)] = 2.0
    gate_timeout: Annotated[float, Row("Time for one check.", PERIOD, CHECKS, where=_ALL)] = 600.0
    allow: Annotated[
        tuple[str, ...],
        Row("Run only checks that match one of these.", LIST, CHECKS, metavar="PATTERN", where=_ITEMS),
    ] = ()
    deny: Annotated[
        tuple[str, ...], Row("Run no check that matches.", LIST, CHECKS, metavar="PATTERN", where=_ITEMS)
    ] = ()
    on_review: Annotated[
        str, Row("A change that a person must see.", choice("set-aside", "pause"), CHECKS, where=_ALL)
    ] = "set-aside"
    accept_proposed: Annotated[bool, Row("Also run items that agents have proposed.", SWITCH, TASK, where=_ITEMS)] = (
        False
    )
    closing: Annotated[
        str, Row("An agent also writes a closing paragraph.", TEXT, TASK, flag="--summary-prompt", where=_ALL)
    ] = ""
    """What an agent is asked for at the end, beside the computed summary."""
    branch: Annotated[
        str,
        Row(
            "The branch that gets the commits (raymond/ID).",
            *(TEXT, GIT),
            metavar="NAME|current",
            often=True,
            where=_ALL,
        ),
    ] = ""
    """The branch that follows the tip; empty for none."""
    applies: bool = False
    """Whether what counts is brought into the checkout at the end."""
    commits: bool = True
    strict: bool = False
    """Items that may not mean what their author thinks are passed over."""
    way: str = "here"
    """Where agents work."""
    why: str = ""
    """Why not isolated, if they do not."""
    began_on: str = ""
    """The branch that was checked out at the start, if agents work in the checkout."""
    took: int = 0
    """How many files that were not committed it took along."""
    carry: tuple[str, ...] = ()
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
    def gate(self) -> str:
        """The check of the plain loop, as people are told it."""
        return " && ".join(self.gates)

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
