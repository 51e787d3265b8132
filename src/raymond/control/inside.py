"""Inside of a step: what it may do with other runs, and what a run that it starts may do."""

import os
import sys

from msgspec import Struct
from msgspec.structs import replace

from raymond import pasted
from raymond.drivers import origin
from raymond.errors import JournalError, UsageError
from raymond.language.refusal import Refusal
from raymond.machine import limits
from raymond.machine.events import RunStarted
from raymond.machine.limits import DEFAULT_MODE, MODE_RANKS, Rights
from raymond.machine.run import Run
from raymond.machine.sender import Sender, barred
from raymond.steps.working_directory import allowed, is_inside
from raymond.store import journal
from raymond.system.stragglers import MARK

WORKSPACE = "RAYMOND_WORKSPACE"
"""Says to a step how it works, if not here."""
_GONE = "the process that drives it has ended: resume it first"


class Starter(Struct, frozen=True):
    """Who starts a run: a person, or a step of another run."""

    sender: Sender
    run: Run | None = None
    """The run whose step it is, as far as it can be found."""


def starter() -> Starter:
    """Who starts a run here and now."""
    sender = origin.this()
    if sender.unknown:
        raise _unseen("raymond")
    if not sender.steps:
        return Starter(sender)
    for folder in origin.outer(os.getpid())[:1]:
        try:
            return Starter(sender, journal.read(folder).run)
        except JournalError:
            break
    return Starter(sender)


def check(start: RunStarted, what: str) -> None:
    """Refuse `what` when this process belongs to a step that may not do it with the run that began with `start`."""
    refused = refusal(start, what)
    if refused:
        raise UsageError(refused.reason, hint=refused.hint)


def refusal(start: RunStarted, what: str) -> Refusal | None:
    """Why this process may not do `what` with the run that began with `start`."""
    return barred(start.key, start.inside, what, origin.this())


def check_workspace() -> None:
    """Refuse to start a run in a step that cannot reach the place where runs are kept."""
    if os.environ.get(WORKSPACE) == "isolated" and MARK in os.environ:
        hint = "let the workflow fork agents instead, or start it in a state that works here"
        raise UsageError("a step that works isolated cannot start a run", hint=hint)


def check_agent(what: str) -> None:
    """Refuse `what` to everything that an agent's program has started, inside of a run or outside."""
    if agent := origin.this().agent:
        raise UsageError(
            f"`{what}` was asked for by what {agent} has started",
            hint="a person does that, from a shell that no agent has started",
        )


def check_person(what: str) -> None:
    """Refuse `what` to every step."""
    sender = origin.this()
    if sender.unknown:
        raise _unseen(what)
    if sender.steps:
        raise UsageError(
            f"`{what}` was asked for by a step of a run",
            hint="a person does that, from a shell that no step has started",
        )


def check_by_hand(what: str) -> None:
    """Refuse `what` to every step, and to everything that an agent's program has started."""
    check_agent(what)
    check_person(what)


def _unseen(what: str) -> UsageError:
    return UsageError(
        f"`{what}` needs to know which processes it comes from, and they cannot be seen",
        hint="start it again from a shell whose /proc shows the processes of its own PID namespace",
    )


def leave() -> None:
    """Let a run that is started here outlive the run whose step starts it; refused where that was not allowed."""
    who = starter()
    if not who.sender.steps:
        return
    if who.run is None or not who.run.start.allow_start:
        raise UsageError(
            "a step cannot start a run that outlives its own",
            hint="`raymond run` without -d runs it inside the step; or start the outer run with --allow-start",
        )
    if MARK in os.environ:
        # By its mark a process is found, and ended, with the run that started it; only a new program is without.
        sys.stdout.flush()
        sys.stderr.flush()
        kept = {name: value for name, value in os.environ.items() if name != MARK}
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], kept)


def narrowed(who: Starter, started: RunStarted) -> RunStarted:
    """A run that a step starts has no more rights, and no higher budget, than the one the step belongs to."""
    if not who.sender.steps:
        return started
    if who.run is None:
        raise UsageError("the run of this step cannot be found, so nothing can be started in it", hint=_GONE)
    given = who.run.rights
    if not started.permission_mode and not given.skip:
        started = replace(started, permission_mode=given.mode)
    wider = _wider(given, who.run.start, started)
    if wider:
        raise UsageError(f"a step cannot start a run with {wider}", hint="the outer run does not have it")
    most, outer = who.run.limits.budget or 0.0, who.run.start
    started = replace(
        started,
        inside=who.sender.steps,
        prices=started.prices | outer.prices,
        unknown_turn_cost=max(started.unknown_turn_cost, outer.unknown_turn_cost),
    )
    if not most or 0 < started.budget <= most:
        return started
    return replace(started, budget=most, budget_from="the outer run")


def _wider(given: Rights, outer: RunStarted, started: RunStarted) -> str:
    asked = limits.rights_of(started)
    if given.skip:
        return ""
    if asked.skip:
        return "--dangerously-skip-permissions"
    if MODE_RANKS[asked.mode or DEFAULT_MODE] > MODE_RANKS[given.mode or DEFAULT_MODE]:
        return f"permission mode {asked.mode or DEFAULT_MODE}"
    others = [
        *(
            []
            if is_inside(started.cwd, allowed(outer.cwd, tuple(outer.roots)))
            else [pasted.flag("--cd", started.cwd, "DIR")]
        ),
        *(pasted.flag("--allow-tool", tool, "TOOL") for tool in asked.allowed if tool not in given.allowed),
        *(pasted.flag("--root", root, "DIR") for root in started.roots if root not in outer.roots),
        *(pasted.flag("--notify", target, "TARGET") for target in started.notify if target not in outer.notify),
        *(["decide_by = program"] if started.decide_by == "program" != outer.decide_by else []),
        *(["--allow-start"] if started.allow_start and not outer.allow_start else []),
        *(["--allow-test-edits"] if started.allow_test_edits and not outer.allow_test_edits else []),
    ]
    return others[0] if others else ""
