"""What a notification says to a person: a title and a text, safe to show anywhere.

The command to run comes first, where no text of an agent can push it away, and every line of an agent is quoted.
"""

from msgspec import Struct

from raymond.faces import summary, words
from raymond.faces.foreign_text import in_margin
from raymond.faces.question import folded, size
from raymond.language import choices
from raymond.machine.events import AgentPaused, AskStarted, BackendClosed
from raymond.machine.run import Run
from raymond.text import visible
from raymond.views.status import loop_result, run_status
from raymond.views.times import instant

LONGEST = 8_000
"""Characters of a text: an environment variable holds them, and so do most services."""
_QUOTE = "> "
_ENDED = {
    "waiting": "waits for an answer",
    "cancelled": "was cancelled",
    "paused": "is paused",
    "stopped": "is stopped",
    "running": "is interrupted",
}


_CLOSED = {
    "limit": "has reached a usage limit",
    "auth": "is not logged in, or not paid for",
    "exhausted": "finds no resources on this machine",
}


class Message(Struct, frozen=True):
    """What a person reads."""

    title: str
    text: str


def asked(run: Run, event: AskStarted) -> Message:
    """A question: whole, or only mentioned when it is too long; nobody should decide on a part of it."""
    id = run.start.workflow_id
    answer = f"raymond answer {id} {event.agent}"
    question = "\n".join(in_margin(folded(event.question.strip()), _QUOTE))
    if len(question) > LONGEST:
        question = too_long(event.question, answer)
    # A file is read on the machine that has it.
    files = [f"file: {one.path} ({size(one.size)})" for one in event.files]
    offered = [f"choices: {choices.offer(event.choices)}"] if event.choices else []
    about = [visible(line) for line in (f"answer it with: {answer}", *offered, *files)]
    agent = run.agents.get(event.agent)
    title = f"{id}: {words.who(agent) if agent else event.agent} asks"
    return Message(visible(title), "\n".join([*about, "", question]))


def review(run: Run, event: AgentPaused) -> Message:
    """A green check that counts when a person says so."""
    id = run.start.workflow_id
    agent = run.agents.get(event.agent)
    who = words.who(agent) if agent else event.agent
    title = f"{id}: the work of {who} waits for a review"
    why = "\n".join(in_margin(event.reason, _QUOTE))
    look = f"look at it with: raymond review {id}"
    return Message(visible(title), "\n\n".join([look, why])[:LONGEST])


def too_long(question: str, command: str) -> str:
    """What is said instead of a question that has no room."""
    return f"[a question of {len(question):,} characters: `{command}` shows it]"


def ended(run: Run) -> Message:
    """How a run ended."""
    id, status = run.start.workflow_id, run_status(run)
    if told := loop_result(run).get("text"):
        return Message(visible(f"{id}: the loop has ended"), visible(f"{told}\n\nraymond {run.start.loop} status"))
    lines = summary.ending(run, status).split("\n")
    # Only our own lines begin with their name: those of others are inside a margin.
    at = next((number for number, line in enumerate(lines) if line.startswith("next:")), len(lines))
    told = [line.replace(summary.MARGIN, _QUOTE, 1) if line.startswith(summary.MARGIN) else line for line in lines[:at]]
    text = "\n".join([*lines[at:], "", *told])
    if len(text) > LONGEST:
        text = "\n".join([*lines[at:], "", lines[0], f"[too long to show here: `raymond status {id}` shows it]"])
    return Message(visible(f"{id} {_ENDED.get(status, status)}"), text)


def closed(run: Run, event: BackendClosed, what: str) -> Message:
    """Nothing can be asked of a backend for a while, or until a person has done something."""
    id = run.start.workflow_id
    title = f"{id}: {event.backend} {_CLOSED[what]}"
    until = f"it goes on by itself at {instant(event.until)}" if event.until else f"then: raymond resume {id}"
    return Message(visible(title), "\n\n".join([until, *in_margin(event.error, _QUOTE)])[:LONGEST])


def near_budget(run: Run, warning: str) -> Message:
    """Most of the budget is spent."""
    id = run.start.workflow_id
    return Message(visible(f"{id}: the budget is nearly spent"), f"{warning} ({words.many(run.iterations, 'step')})")
