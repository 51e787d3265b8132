"""What a run may have to go through: things that happen to it, and the condition of the machine.

`make torture WITHOUT=KIND,KIND` leaves kinds of trouble out; everything else stays as the seed says.
"""

import os
import shutil
from random import Random

from msgspec import Struct

from raymond.workspace import ability

EVENTS = {
    "kill": "kill -9 of whoever drives the run, also while it is being resumed",
    "early": "the same within a moment after its start",
    "all": "the same to everything that runs, as when a machine is switched off",
    "program": "kill -9 of an agent's program",
    "stop": "stop",
    "now": "stop --now",
    "dead": "stop --now after the driver was killed: nothing may be left running",
    "signal": "SIGTERM, SIGHUP, or SIGINT twice",
    "answers": "several answers to one question at once",
    "resumes": "several resumes at once",
    "clean": "clean beside the live run",
}
CONDITIONS = {
    "descriptors": "few open files (RLIMIT_NOFILE)",
    "processes": "few processes (RLIMIT_NPROC, as a user that has no others)",
    "disk": "a disk that fills up (a small tmpfs, else RLIMIT_FSIZE)",
    "clock": "a clock that is set forward and back (of Raymond's own processes)",
    "portable": "no /proc, no pidfd and no epoll (RAYMOND_PORTABLE)",
}
LEFTOVERS = {
    "leftovers": "processes that scripts leave running, which a crash must not end",
    "unmarked": "the same without the mark in their environment",
}
MEANWHILE = {"person": "a person who commits, changes files and lets git remove what nothing refers to"}
"""What happens besides where agents work in a workspace, and the person in the checkout."""
KILLS = {"kill", "early", "all", "dead", "resumes"}
GENTLE = {
    "workspace",
    "kill",
    "early",
    "stop",
    "answers",
    "resumes",
    "clean",
    "portable",
    "leftovers",
    "unmarked",
    "person",
}
"""What lets turns live, so that none is paid for twice."""


class Plan(Struct):
    """The trouble of one round."""

    events: list[str]
    condition: str
    leftovers: list[str]
    workspace: bool = False
    """Agents work in a workspace."""

    @property
    def names(self) -> set[str]:
        return {*self.events, *self.leftovers, *filter(None, [self.condition, "workspace" if self.workspace else ""])}

    @property
    def features(self) -> set[str]:
        """What a workflow may do besides, with this trouble."""
        # A turn that was killed is a try, and then the replies for the next tries are not the ones that were meant.
        found = set() if "program" in self.events or self.condition in ("processes", "descriptors") else {"tries"}
        found |= {"naps"} if self.condition == "clock" else set()
        found |= {"files"} if self.workspace else set()
        if self.condition in ("processes", "disk"):
            return found  # a script that could start nothing or write nothing would fail by itself
        found |= {"judges"}
        found |= {"gates"} if self.condition != "descriptors" else set()  # a check that can open nothing is red
        found |= {"out", "plain", "holding"} if "leftovers" in self.leftovers else {"out"}
        if self.condition == "portable":
            return found  # without /proc, only what stays in the group of its script is found
        found |= {"apart"} if "leftovers" in self.leftovers else set()
        if "unmarked" in self.leftovers and not KILLS & set(self.events):
            found |= {"unmarked", "away"}  # a driver notes them once a second, and one that was killed may not have
        return found


def plan(chance: Random, without: set[str]) -> Plan:
    """The trouble that chance brings, but for what is left out."""
    events = [chance.choice(list(EVENTS)) for _ in range(chance.randint(2, 4))]
    condition = chance.choice(["", "", "", *CONDITIONS])
    leftovers = [name for name in LEFTOVERS if chance.random() < 0.5]
    without = without | impossible()
    return Plan(
        events=[name for name in events if name not in without],
        condition="" if condition in without else condition,
        leftovers=[name for name in leftovers if name not in without],
    )


def moved(plan: Plan, chance: Random, without: set[str]) -> Plan:
    """The same trouble in a workspace, in one of three rounds where there can be one."""
    if chance.random() > 0.33 or plan.condition in ("processes", "disk") or "workspace" in without | impossible():
        return plan
    events = list(plan.events)
    if chance.random() < 0.5 and "person" not in without:
        events.insert(chance.randint(0, len(events)), "person")
    # What a step leaves running ends with it there.
    return Plan(events=events, condition=plan.condition, leftovers=[], workspace=True)


def impossible() -> set[str]:
    """What cannot be done to this machine."""
    found = {"processes"} if os.geteuid() or not shutil.which("setpriv") else set()
    return found | ({"workspace"} if ability.probe("/tmp").problem else set())
