"""Whose question the words of `raymond answer` mean, and what they answer."""

from msgspec import Struct

from raymond.cli import choice
from raymond.control import questions
from raymond.control.handle import RunHandle
from raymond.control.questions import Asked, Open
from raymond.errors import UsageError


class Addressee(Struct, frozen=True):
    """Who is answered."""

    run: RunHandle | None
    """None: whoever asks here."""
    agent: str = ""
    text: str | None = None
    """The answer; None when it is still to be asked for."""


def of(words: tuple[str, ...], *, has_text: bool) -> Addressee:
    """What `[ID] [AGENT] [TEXT]` means; with `has_text` the answer comes from elsewhere.

    What names a run or an agent selects it and is never an answer: whoever types an id expects to be asked.
    """
    if any(not word.strip() for word in words):
        raise UsageError("an empty word is neither an id, nor an agent, nor an answer", hint=_USAGE)
    if len(words) > (2 if has_text else 3):
        raise UsageError("too many words", hint=_USAGE)
    if not words:
        return Addressee(None)
    *names, last = words
    if has_text or len(words) == 3 or last == "-" or last.startswith("@"):
        names, text = (list(words), None) if has_text else (names, last)
        return _named(names, text)
    if len(words) == 1:
        if questions.begins_id(last) or last in questions.of_runs(every=False).agents:
            return _named([last], None)
        return Addressee(None, text=last)
    first = _named(names, last)
    if first.run and (last == first.run.id or last in questions.of_run(first.run.project, first.run.id).agents):
        return Addressee(first.run, agent="" if last == first.run.id else _agent(first.run, last))
    return first


_USAGE = 'raymond answer ID AGENT "TEXT"'


def _named(names: list[str], text: str | None) -> Addressee:
    """The run and the agent that these name."""
    if not names:
        return Addressee(None, text=text)
    first, agent = names[0], names[1] if len(names) > 1 else ""
    if not agent and not questions.begins_id(first) and first in questions.of_runs(every=False).agents:
        return Addressee(None, agent=first, text=text)
    run = choice.find(first) if text is None else choice.change(first)
    return Addressee(run, agent=_agent(run, agent), text=text)


def _agent(run: RunHandle, word: str) -> str:
    """The name of the agent that asks and is called so; else the word itself."""
    found = questions.of_run(run.project, run.id).asked if word else []
    return next((one.question.agent for one in found if one.question.is_called(word)), word)


def asked(whom: Addressee) -> Open:
    """The questions that can be meant; when nobody asks in this project, those of all others, unless it is answered."""
    if whom.run:
        found = questions.of_run(whom.run.project, whom.run.id)
    else:
        found = questions.of_runs(every=False)
        if not found.asked and whom.text is None and not whom.agent:
            found = questions.of_runs(every=True)
    meant = [one for one in found.asked if not whom.agent or one.question.is_called(whom.agent)]
    return Open(meant, found.unreadable, found.agents)


def none(whom: Addressee) -> UsageError:
    """The error when nobody asks."""
    what = f"{whom.agent} is not waiting for an answer" if whom.agent else "no agent is waiting for an answer"
    hint = (
        f"raymond status {whom.run.id} shows what its agents are doing" if whom.run else "raymond list shows the runs"
    )
    return UsageError(what, hint=hint)


def several(found: list[Asked]) -> UsageError:
    """The error when it is unclear who is answered."""
    ways = [f"raymond answer {one.question.workflow_id} {one.question.agent} TEXT" for one in found[:5]]
    more = f", and {len(found) - 5} more" if len(found) > 5 else ""
    names = ", ".join(f"{one.question.agent} of {one.question.workflow_id}" for one in found[:5])
    return UsageError(f"several agents are waiting for an answer: {names}{more}", hint=f"say which one: {ways[0]}")
