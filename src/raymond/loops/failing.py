"""What follows when an item does not count: another attempt, or its end, with nothing lost."""

import json
from collections.abc import Mapping

from msgspec import Struct

from raymond.loops import markers, outcome
from raymond.loops.formats import foreign_text
from raymond.loops.item_run import ItemRun
from raymond.loops.ledger import FAILED, GAVE_UP, REVIEW, TIMED_OUT

NOTHING = "nothing was changed, and the item has no check that could show it was done before"
NO_PLAN = "the plan of the agent cannot be used: "
STAYS = "\n\nIts changes are still in the working tree."
CONFLICT = "it has the marks of a conflict that is not resolved: "
UNFIT = "it does not fit what was committed since it began"
BROKEN = "the agent that worked on it did not end: "
"""Of another program's agent: what RETURNED.py and FAILED.py are given then, with the reason."""
REFUSED = "a person says that it is not done: "
"""What FAILED.py is given then, with the reason."""
REJECTED = "a hook of the project rejected this work:\n"
"""What REJECTED.md is given, before what the hook printed."""
_HOOKS = "the hooks of the project change this work every time"
_LINES = 40


def action_of(run: ItemRun, failure: "Failure") -> str:
    """What follows from an item that used up its attempts."""
    if failure.has_conflict:
        return "pause"  # only a person knows which side is right
    if run.item.failures + 1 >= run.settings.max_failures:
        return "block" if run.settings.on_repeat == "block" else "pause"
    on_fail = run.item.on_fail or run.settings.on_fail
    return "retry" if on_fail == "create-fix-task" and not outcome.can_be_repaired(run) else on_fail


def aside_for(reason: str) -> str:
    """What ASIDE.py is given with a reason that no gate has."""
    return json.dumps(reason)


def set_aside(run: ItemRun) -> outcome.Outcome:
    """An item that waits for a person: a review of its gate asks for that, or what is in it."""
    step, gate = run.step, run.step.gate
    work = run.look(gate)
    given = json.loads(step.input) if step.input.startswith('"') else ""
    told = (step.text("error"), *gate.get("changes", []))
    reason = given or work.reason or "; ".join(one for one in told if one)
    attempt = max(1, step.visit)
    return outcome.failed(run, work, verdict=REVIEW, error=reason, action="aside", attempt=attempt)


def again(run: ItemRun) -> str:
    """Where another attempt begins: one that plans changes nothing, so there is nothing to go on from."""
    run.save(run.take(), run.step.visit)
    if run.item.is_plan:
        run.step.follow()
    return "PLAN.md" if run.item.is_plan else run.settings.worker


def ended(run: ItemRun, failure: "Failure") -> outcome.Outcome:
    """An item that has used up its attempts."""
    work = run.look()
    reply = run.step.input if failure.verdict == GAVE_UP else ""
    action = action_of(run, failure)
    attempt = run.step.visit
    return outcome.failed(
        run, work, verdict=failure.verdict, error=failure.text, action=action, attempt=attempt, reply=reply
    )


class Failure(Struct, frozen=True):
    """Why a visit did not count."""

    verdict: str
    reason: str
    output: str = ""
    """The end of what the check printed."""
    is_red: bool = False
    """Whether its check said so."""
    has_conflict: bool = False
    """Whether it left the marks of a conflict."""

    @property
    def may_retry(self) -> bool:
        """Whether another session may do better: an agent that says it cannot is believed."""
        return self.verdict != GAVE_UP

    @property
    def text(self) -> str:
        """All of it."""
        return f"{self.reason}\n{self.output}".strip()


def read(reply: str, error: str, output: str, gate: Mapping[str, object]) -> Failure:
    """What a visit that failed was told about it."""
    if error:
        verdict = TIMED_OUT if gate.get("verdict") == TIMED_OUT else FAILED
        has_conflict = "marks of a conflict" in str(gate.get("reason", ""))
        is_red = gate.get("verdict") in (FAILED, TIMED_OUT)
        return Failure(verdict, error, output, is_red=is_red, has_conflict=has_conflict)
    if reply.startswith((REFUSED, NO_PLAN, BROKEN)):
        return Failure(FAILED, reply)
    if reply.startswith(CONFLICT):
        return Failure(FAILED, reply, has_conflict=True)
    if markers.has(reply, markers.FAILED):
        return Failure(GAVE_UP, f"the agent said that it cannot do this: {markers.without(reply).strip()}")
    if reply in (NOTHING, UNFIT):
        return Failure(FAILED, reply)
    if reply.startswith(REJECTED):
        return Failure(FAILED, REJECTED.strip(" :\n"), output=reply.removeprefix(REJECTED))
    return Failure(FAILED, _HOOKS)


def unverified(error: str, output: str) -> str:
    """What an agent is told about an item that is marked as done, and whose check is red."""
    from raymond.machine.prompts import neutral

    shown = neutral("\n".join(output.strip().splitlines()[-_LINES:]))
    printed = f"\n\nThe end of what the check printed:\n\n{foreign_text.fenced(shown)}" if shown else ""
    return f"It is marked as done, but its check says otherwise: {neutral(error)}{printed}"


def told(failure: Failure, *, is_plan: bool = False) -> str:
    """What the next attempt is told about the one before."""
    from raymond.machine.prompts import neutral  # most items need one attempt

    shown = neutral("\n".join(failure.output.strip().splitlines()[-_LINES:]))
    printed = f"\n\nThe end of what the check printed:\n\n{foreign_text.fenced(shown)}" if shown else ""
    reason = f"An earlier session tried this item, and it did not count: {neutral(failure.reason)}"
    return f"{reason}{printed}" + ("" if is_plan else STAYS)
