"""The points at which a short run is crashed or let down: every system call that changes something.

The commands of one short run, a run that is answered at its door, the resume after a crash, and `clean` are recorded
under strace; so are a run in a workspace, `apply`, and `clean` of a failed run whose tree holds the only copy of its
work (of these, what Raymond does: the processes of git are their own). At each call that changes something (syscalls.py says which those are, and why no others) a new process
is killed, before the call is made; what is left is resumed until it is done and must have lost nothing. At each of
them, and once at each kind of the others, the call fails instead: the command must carry on, or say in words what is
wrong, and what is left must then come to the same end. What a command does before it first looks for its home is
Python importing it, and changes nothing.

A point is named by its stage, call, what the call is about, which of those it is, and what happens there:
    run:write:home/projects/room/runs/r/journal.jsonl:3:KILL
No two runs make exactly the same calls. Whether the point was met is read in the trace; if another call was, the
number is corrected and it is tried again, and a point that is not met then is reported.
"""

import random
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from crash.syscalls import CODE, KILL, Call, begun
from crash.torture import ID

_HERE = Path(__file__).resolve().parent
_READING = 2
"""Ways in which a call that changes nothing fails."""


class Stage(Struct, frozen=True):
    """A command that is struck, and the world it finds."""

    name: str
    world: str
    args: tuple[str, ...]
    flow: str = "short"
    since: str = ""
    """The call from which on it is struck; empty: the first that is about the home."""
    near: str = ""
    """What the first call is about that is struck, if that says more."""


def start(flow: str) -> tuple[str, ...]:
    """The command that starts a run."""
    way = ("--workspace", "isolated") if flow in INSIDE else ()
    return ("run", str(_HERE / flow), "--id", ID, "--backend", "scripted-program", *way)


INSIDE = ("place", "fails")
"""The flows whose agents work in a workspace."""


ANSWER = ("answer", ID, "main", "yes", "--no-resume")
RESUME = ("resume", ID)
_STAGES = (
    Stage("run", "nothing", start("short")),
    Stage("answer", "asked", ANSWER),
    Stage("resume", "answered", RESUME),
    Stage("recover", "crashed", RESUME),
    Stage("door", "nothing", start("door"), flow="door", since="socket"),
    Stage("clean", "done", ("clean", ID)),
    Stage("workspace", "repository", start("place"), flow="place", near="/workspace"),
    Stage("apply", "worked", ("apply", ID), flow="place"),
    Stage("drop", "failed", ("clean", ID), flow="fails"),
)
STAGES = {stage.name: stage for stage in _STAGES}


class Point(Struct, frozen=True):
    """A call of a stage, and what happens there."""

    stage: str
    name: str
    about: str
    number: int
    what: str
    """KILL, or an error."""
    when: int = 0
    """Which call of its name it was in the record; 0 when it was not there."""

    def __str__(self) -> str:
        return f"{self.stage}:{self.name}:{self.about}:{self.number}:{self.what}"

    @property
    def kills(self) -> bool:
        """Whether the command is killed there."""
        return self.what == KILL

    @property
    def injection(self) -> str:
        """What happens there, as strace has it."""
        return f"signal={KILL}" if self.kills else f"error={self.what}"

    def is_at(self, call: Call) -> bool:
        """Whether this is the call."""
        return (call.name, call.about, call.number) == (self.name, self.about, self.number)


MIDDLE = "run:write:home/projects/room/runs/r/journal.jsonl:3:KILL"
"""Where the run has crashed that is resumed in the stage `recover`: a script had ended, and a turn was running."""


def points(records: Mapping[str, list[Call]]) -> Iterator[Point]:
    """Every point of the stages that were recorded.

    Each call that changes something crashes, and fails in one way; the first of its kind, in whatever stage, fails in
    every way. Of the others only the first of a kind fails. In a workspace, only calls that change something are
    struck, and fail if they are the first of a kind; of the many that remove a folder, every seventh is.
    """
    seen: set[tuple[str, str, bool]] = set()
    for stage in _STAGES:
        trouble = _trouble_inside if stage.flow in INSIDE else _trouble
        for call in _struck(stage, records[stage.name]):
            for what in trouble(call, is_first=call.kind not in seen):
                yield Point(stage.name, call.name, call.about, call.number, what, call.when)
            seen.add(call.kind)


def _struck(stage: Stage, calls: list[Call]) -> list[Call]:
    if stage.since:
        first = next(at for at, call in enumerate(calls) if call.name == stage.since)
        found = calls[first:]
    else:
        # Only a run that lasts makes a cgroup, and it depends on the machine whether another one does.
        found = [call for call in begun(calls, "home") if "cgroup" not in call.about.lower()]
    while found and stage.near not in found[0].about:
        found = found[1:]
    return [call for call in found if not (call.changes and call.about.startswith(CODE))]


def _trouble(call: Call, *, is_first: bool) -> list[str]:
    errors = call.errors
    if not call.changes:
        return errors[:_READING] if is_first else []
    if not is_first and errors:
        errors = [errors[call.when % len(errors)]]
    return [KILL, *errors]


def _trouble_inside(call: Call, *, is_first: bool) -> list[str]:
    if not call.changes or (call.name in _REMOVING and call.when % 7):
        return []
    errors = call.errors
    return [KILL, errors[call.when % len(errors)]] if is_first and errors else [KILL]


_REMOVING = ("unlinkat", "fchmod")


def named(text: str, records: Mapping[str, list[Call]]) -> Point:
    """The point of this name."""
    stage, name, about, number, what = text.split(":")
    point = Point(stage, name, about, int(number), what)
    when = next((call.when for call in records[stage] if point.is_at(call)), 0)
    return Point(stage, name, about, int(number), what, when)


def sample(found: list[Point], number: int, seed: int) -> list[Point]:
    """Some of the points by chance, or all of them when `number` is 0."""
    return random.Random(seed).sample(found, min(number, len(found))) if number else found


def corrected(point: Point, recorded: list[Call], made: list[Call]) -> int:
    """Which call of its name the point probably is in another try, after one in which these calls were `made`."""
    for call in made:
        if point.is_at(call):
            return call.when
    met = next((call for call in made if call.struck), None)
    if met is None:
        return max(1, point.when - 1)  # it ended before; perhaps one call less is made
    usual = {(call.about, call.number): call.when for call in recorded if call.name == met.name}
    drift = met.when - usual.get((met.about, met.number), met.when - 1)
    return max(1, point.when + drift)
