"""Show what waits for the review of a person, and carry out what the person decides."""

import sys

from raymond import pasted
from raymond.cli import delivery, picker
from raymond.control import inside, left_requests, reviews, runs
from raymond.control.handle import RunHandle
from raymond.control.reviews import Review
from raymond.errors import UsageError
from raymond.faces.foreign_text import hung, in_margin, width_of
from raymond.faces.words import named
from raymond.text import visible

_MARGIN = "  | "


def _chosen(run: RunHandle, agent: str | None) -> Review:
    """The review that is meant."""
    found = [one for one in reviews.of_run(run.project, run.id) if not agent or agent in (one.agent, one.label)]
    if not found and agent and (others := waiting(run)):
        words = f"{pasted.word(others[0], 'AGENT')} {pasted.word(agent, 'REASON')}"
        hint = f"if that is the reason: raymond reject {run.id} {words}"
        raise UsageError(f"there is no agent `{agent}` whose work waits for a review", hint=hint)
    if not found:
        hint = f"raymond status {run.id} shows what its agents are doing"
        raise UsageError(f"nothing of {run.id} waits for a review", hint=hint)
    if len(found) > 1:
        names = ", ".join(one.agent for one in found)
        raise UsageError(f"several agents wait for a review: {names}", hint=f"raymond review {run.id} shows them")
    return found[0]


def waiting(run: RunHandle) -> list[str]:
    """What agents whose work waits for a review are called."""
    found = reviews.of_run(run.project, run.id)
    return [name for one in found for name in (one.agent, one.label) if name]


def lines(run: RunHandle, review: Review) -> list[str]:
    """All of a review, and the commands that decide it."""
    return [
        *_shown(run, review),
        f"accept: raymond accept {run.id} {pasted.word(review.agent, 'AGENT')}",
        f"reject: raymond reject {run.id} {pasted.word(review.agent, 'AGENT')} REASON",
    ]


def _shown(run: RunHandle, review: Review) -> list[str]:
    """All of a review; nothing of what others wrote is cut or hidden."""
    width = width_of(sys.stdout)
    head = f"{run.id}, {named(review.agent, review.label)} in {review.state}: {review.verdict}"
    shown = [*hung(visible(head), _MARGIN, width), *hung(visible(f"why:    {review.reason}"), _MARGIN, width)]
    for one in review.changes:
        shown += hung(visible(f"sealed: {one}"), _MARGIN, width)
    if review.words:
        shown += ["the agent says:", *in_margin(review.words, _MARGIN, width)]
    for what, text in review.texts.items():
        shown += [f"{what}:", *in_margin(text.rstrip("\n"), _MARGIN, width)]
    return shown


def decide(run: RunHandle, agent: str | None, *, accepted: bool, reason: str = "", no_resume: bool = False) -> int:
    """Show it, ask, and do what the person says; then the run continues."""
    inside.check_agent("accept" if accepted else "reject")
    review = _chosen(run, agent)
    inside.check(run.start, "accept" if accepted else "reject")
    if accepted:
        print("\n".join(_shown(run, review)), flush=True)
        if not picker.can_ask():
            what = "a change of what decides a check is accepted on a terminal, where it can be seen"
            raise UsageError(what, hint=f"type it in a terminal (ssh -t), with no pipe: raymond accept {run.id}")
        if not picker.agrees("accept this change?"):
            print("nothing was accepted", file=sys.stderr)
            return 3
    elif not reason:
        print("\n".join(_shown(run, review)), flush=True)
        reason = picker.ask("why? The agent is told; Ctrl-C rejects nothing: ") if picker.can_ask() else ""
    done = reviews.decide(run.project, run.id, review, accepted=accepted, reason=reason)
    told = delivery.words(done, run.id, review.agent)
    verb = "accepted" if accepted else "rejected"
    if told or no_resume:
        print(told or f"{verb}; {left_requests.onward(run.project, run.id)}", file=sys.stderr)
        return 0
    if runs.is_driven(run.project.run(run.id)):
        return 0
    from raymond.cli import continuing

    return continuing.go_on(run, attach=False, verb=verb)
