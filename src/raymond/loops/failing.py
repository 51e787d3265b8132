"""What follows when an item does not count: another attempt, or its end, with nothing lost."""

from collections.abc import Mapping

from msgspec import Struct

from raymond.loops import documents, doubts, markers
from raymond.loops.formats import foreign_text, queue, session_log
from raymond.loops.inspection import Inspection
from raymond.loops.ledger import FAILED, GAVE_UP, REVIEW, TIMED_OUT, Entry
from raymond.loops.settings import SESSION
from raymond.loops.sources import source_of
from raymond.loops.work import Work

NOTHING = "nothing was changed, and the item has no check that could show it was done before"
NO_PLAN = "the plan of the agent cannot be used: "
STAYS = "\n\nIts changes are still in the working tree."
REFUSED = "a person says that it is not done: "
"""What FAILED.py is given then, with the reason."""
_HOOKS = "the hooks of the project reject this work, or change it every time"
WAITS = "waits for a person"
"""Why an item is blocked that was set aside; then the command that shows it, and the reason."""
_FIX = "Fix: "
_LINES = 40

_LEAVES = ("skip", "block")
"""Actions after which the tree is as it was before the item."""
_DONE = {
    "skip": "Skipped it; {kept}",
    "block": "Marked it as blocked; {kept}",
    "retry": "Put it at the end of the queue; its changes stay in the tree",
    "create-fix-task": "Created {fix}; its changes stay in the tree",
    "pause": "Paused for a person; its changes stay in the tree",
    "aside": "Set it aside for a person; {kept}",
}
_STATES = {"pause": "Waiting for a person"}


def action_of(work: Work, verdict: str) -> str:
    """What follows from an item that used up its attempts."""
    if verdict == REVIEW:
        return "aside"
    if work.failures + 1 >= work.settings.max_failures:
        return "block" if work.settings.on_repeat == "block" else "pause"
    return "retry" if work.on_fail == "create-fix-task" and not _can_be_repaired(work) else work.on_fail


def _can_be_repaired(work: Work) -> bool:
    """Whether an item can be made that repairs this one: another task of a spec, or what replaces it in the queue.

    An item of the queue that repairs another is tried again instead; so is a story, of which only a person writes more.
    """
    if work.settings.loop == SESSION:
        return not work.title.startswith(_FIX)
    return work.tasks == (work.key,)


def end(
    work: Work, found: Inspection, *, verdict: str, error: str, action: str, attempt: int = 1, reply: str = ""
) -> Entry:
    """Save what the agent left, return to the base where the action asks for it, write it down."""
    error = doubts.cleaned(error)
    saved, kept = work.save(found, attempt)
    if action in (*_LEAVES, "aside"):
        work.go_back(found)
    else:
        saved = kept = ""
    work.attempts_made = attempt
    made = source_of(work.step.documents, work.settings).failed(work, verdict=verdict, action=action, error=error)
    fix = made or f'item "{_fix_title(work.title)}"'
    left = f"its changes are kept in {saved}" if saved else "it had changed nothing"
    done = _DONE[action].format(kept=left, fix=fix)
    work.write_failure(error, done, _STATES.get(action, "Continuing to next item"))
    reason = " ".join(error.split()) or verdict
    work.write_progress(f"**{work.title}**\n\nNot done. {done}.", f"{verdict.upper()}: {foreign_text.cut(reason, 300)}")
    ended = f"Not done ({verdict}): {foreign_text.cut(reason, 500)}\n\n{done}."
    told = session_log.told(markers.without(reply))
    found.proposed += session_log.proposals(told.pop("Next Steps", ""))
    work.write_log(told, _queue(work, found, action, reason), found, ended)
    return work.entry(
        verdict, found, error=work.excerpt(error), action=action, saved=saved, kept=kept, attempts=attempt
    )


def _queue(work: Work, found: Inspection, action: str, reason: str) -> list[str]:
    """The queue that is left when the item did not count."""
    before, proposed, why = work.queue_before(), work.new(found.proposed), foreign_text.cut(reason, 120)
    if work.settings.loop != SESSION:
        return [*(one.raw for one in before), *proposed]
    own = [one for one in before if queue.key(one) == work.key]
    others = [one.raw for one in before if queue.key(one) != work.key]
    block = own[0].raw if own else work.raw
    if action == "retry":
        return [*others, block, *proposed]
    if action == "block":
        times = work.failures + 1
        block = queue.marked(block, f"[BLOCKED: failed {times} times in a row: {why}]")
    elif action == "aside":
        shows = f"raymond review {work.step.id}"
        block = queue.marked(block, f"[BLOCKED: {WAITS} ({shows}): {why}]")
    elif action == "create-fix-task":
        block = _fix(work, block, reason)
    at = next((index for index, one in enumerate(before) if queue.key(one) == work.key), 0)
    return [*others[:at], block, *others[at:], *proposed]


def _fix_title(title: str) -> str:
    return title if title.startswith(_FIX) else f"{_FIX}{title}"


def _fix(work: Work, block: str, reason: str) -> str:
    """An item that replaces one that failed: the same tags and metadata, and what is known about the failure."""
    first, _, rest = block.partition("\n")
    at = first.find(work.title)
    first = f"{first[:at]}{_fix_title(work.title)}{first[at + len(work.title) :]}" if at >= 0 else _made(work)
    told = [f"It failed: {foreign_text.cut(reason, 300)}", f"Session log: {work.log_path()}"]
    kept = filter(None, [rest.replace("\r\n", "\n").rstrip("\n")])
    return "\n".join([first, *kept, *(f"   {foreign_text.inline(line)}" for line in told)]) + "\n"


def _made(work: Work) -> str:
    check = f"[VERIFY: `{work.check}`] " if work.check else ""
    return f"- {check}{_fix_title(work.title)}"


class Failure(Struct, frozen=True):
    """Why a visit did not count."""

    verdict: str
    reason: str
    output: str = ""
    """The end of what the check printed."""
    is_red: bool = False
    """Whether its check said so."""

    @property
    def may_retry(self) -> bool:
        """Whether another session may do better: an agent that says it cannot is believed."""
        return self.verdict != GAVE_UP

    @property
    def text(self) -> str:
        """All of it."""
        return f"{self.reason}\n{self.output}".strip()


def read(reply: str, error: str, output: str, gate: Mapping[str, object], rejection: str = "") -> Failure:
    """What a visit that failed was told about it."""
    if error:
        verdict = TIMED_OUT if gate.get("verdict") == TIMED_OUT else FAILED
        return Failure(verdict, error, output, is_red=gate.get("verdict") in (FAILED, TIMED_OUT))
    if reply.startswith((REFUSED, NO_PLAN)):
        return Failure(FAILED, reply)
    if markers.has(reply, markers.FAILED):
        return Failure(GAVE_UP, f"the agent said that it cannot do this: {markers.without(reply).strip()}")
    if reply == NOTHING:
        return Failure(FAILED, NOTHING)
    return Failure(FAILED, _HOOKS, documents.read(rejection) if rejection else "")


def unverified(error: str, output: str) -> str:
    """What an agent is told about an item that somebody called done, and whose check is red."""
    from raymond.machine.prompts import neutral

    shown = neutral("\n".join(output.strip().splitlines()[-_LINES:]))
    printed = f"\n\nThe end of what the check printed:\n\n{foreign_text.fenced(shown)}" if shown else ""
    return f"It is marked as done, but its check says otherwise: {neutral(error)}{printed}"


def again(work: Work, found: Inspection) -> str:
    """Where another attempt begins: whoever plans changes nothing, so there is nothing to go on from."""
    if work.is_plan:
        work.go_back(found)
    return "PLAN.md" if work.is_plan else "WORK.md"


def told(failure: Failure, *, is_plan: bool = False) -> str:
    """What the next attempt is told about the one before."""
    from raymond.machine.prompts import neutral  # most items need one attempt

    shown = neutral("\n".join(failure.output.strip().splitlines()[-_LINES:]))
    printed = f"\n\nThe end of what the check printed:\n\n{foreign_text.fenced(shown)}" if shown else ""
    reason = f"An earlier session tried this item, and it did not count: {neutral(failure.reason)}"
    return f"{reason}{printed}" + ("" if is_plan else STAYS)
