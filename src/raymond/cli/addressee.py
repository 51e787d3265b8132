"""Whose question the words of `raymond answer` mean, and what they answer."""

from collections.abc import Sequence
from difflib import get_close_matches

from msgspec import Struct

from raymond import pasted
from raymond.cli import choice
from raymond.control import naming, questions, runs
from raymond.control.handle import RunHandle
from raymond.control.questions import Asked, Open
from raymond.errors import RunNotFound, UsageError
from raymond.faces import words
from raymond.faces.words import named
from raymond.language import choices
from raymond.language.refusal import cut


class Addressee(Struct, frozen=True):
    """Who is answered."""

    run: RunHandle | None
    """None: whoever asks here."""
    agent: str = ""
    text: str | None = None
    """The answer; None when it is still to be asked for."""


def of(words: tuple[str, ...], *, has_text: bool) -> Addressee:
    """What `[ID] [AGENT] [TEXT]` means; with `has_text` the answer comes from elsewhere.

    One word alone is never an answer: whoever types an id, even with a typing error, expects to be asked.
    """
    if any(not word.strip() for word in words):
        raise UsageError("an empty word is neither an id, nor an agent, nor an answer", hint=_USAGE)
    if len(words) > (2 if has_text else 3):
        raise UsageError("too many words", hint=_USAGE)
    if has_text or not words:
        return _named(words, None)
    *names, last = words
    if len(words) == 3 or last == "-" or last.startswith("@"):
        return _named(names, last)
    if len(words) == 1:
        return _named(words, None)
    return _selected(_named(names, last), last)


_SHORT = 4
"""Characters of a word that is like a name only if it is that name in other letters."""
_NEAR = 0.8
_USAGE = 'raymond answer ID AGENT "TEXT"'


def _named(names: Sequence[str], text: str | None) -> Addressee:
    """The run and the agent that these name."""
    if not names:
        return Addressee(None, text=text)
    first, agent = names[0], names[1] if len(names) > 1 else ""
    if not agent and not naming.begins_id(first):
        here = questions.of_runs(every=False)
        if _is_agent(here, first):
            return Addressee(None, agent=first, text=text)
        if text is None:
            raise _no_run(first, here)
    run = choice.find(first) if text is None else choice.change(first)
    return Addressee(run, agent=naming.agent_meant(run.project, run.id, agent) if agent else "", text=text)


def _is_agent(found: Open, word: str) -> bool:
    """Whether an agent of a run that asks something is called so; a label that only says several is an error."""
    called = [names.of(word) for names in found.names if names.of(word)]
    if called and all(len(several) > 1 for several in called):
        raise naming.several_agents(word, called[0])
    return bool(called)


def _no_run(word: str, here: Open) -> RunNotFound:
    """The error for a word that names nothing; it may be meant as an answer, which needs the id.

    Where something is asked, only what is very like the id of a run is taken for one, and a choice never.
    """
    found = here.asked or questions.of_runs(every=True).asked
    if not found:
        return naming.unknown(cut(word), otherwise="to answer: raymond answer ID TEXT")
    ways = [_way(one, "TEXT") for one in found[:3]]
    is_choice = any(choices.pick(one.question.choices, word) for one in found)
    return naming.unknown(cut(word), otherwise=f"to answer: {' or '.join(ways)}", like=1.0 if is_choice else _NEAR)


def _selected(first: Addressee, word: str) -> Addressee:
    """Of `ID WORD`: a word that names an agent of the run selects it; what can mean something else is no answer."""
    if not first.run:
        return first
    run, id = first.run, first.run.id
    names = naming.names_of_agents(run.project, id)
    agent = naming.agent_named(names, word)
    asked = questions.of_run(run.project, id).asked
    if any(one.question.agent == agent for one in asked) or questions.overdue(run.project, id, agent or "-"):
        return Addressee(run, agent=agent)
    if agent:
        who = agent if agent == word else f"`{word}` is the label of {agent}, which"
        raise _not_the_answer(f"{who} is not waiting for an answer", id, asked, word)
    if naming.is_id(word):
        raise _not_the_answer(f"`{word}` is the id of a run", id, asked, word)
    near = _nearly(word, [*names.names, *names.labels, id])
    if near and not any(choices.pick(one.question.choices, word) for one in asked):
        raise _not_the_answer(f"`{word}` reads like `{near}`, which it is not", id, asked, word)
    return first


def _nearly(word: str, names: list[str]) -> str:
    """The name that somebody may have meant to type; empty for a word that is like none."""
    said = " ".join(word.split()).casefold()
    known = {" ".join(name.split()).casefold(): name for name in names if name}
    if len(said) < _SHORT:
        return known.get(said, "")
    begun = next((name for key, name in known.items() if key.startswith(said)), "")
    near = get_close_matches(said, known, 1, _NEAR)
    return begun or (known[near[0]] if near else "")


def _not_the_answer(what: str, id: str, asked: list[Asked], word: str) -> UsageError:
    if not asked:
        return UsageError(what, hint=f"raymond status {id} shows what its agents are doing")
    ways = [_way(one, word) for one in asked[:3]]
    return UsageError(what, hint=f"if it is the answer: {' or '.join(ways)}")


def _way(asked: Asked, text: str) -> str:
    return f"{questions.way(asked)} {pasted.word(text, 'TEXT')}"


def asked(whom: Addressee) -> Open:
    """The questions that can be meant: of this project, or of all when it has no runs, unless it is answered."""
    if whom.run:
        found = questions.of_run(whom.run.project, whom.run.id)
    else:
        found = questions.of_runs(every=whom.text is None and not whom.agent and not runs.here().ids())
    meant = [one for one in found.asked if not whom.agent or one.question.is_called(whom.agent)]
    return Open(meant, found.unreadable, found.names)


def none(whom: Addressee) -> UsageError:
    """The error when nobody asks, or no longer."""
    late = questions.overdue(whom.run.project, whom.run.id, whom.agent) if whom.run else []
    if whom.run and late:
        until = words.instant(late[0].deadline)
        hint = f"raymond resume {whom.run.id} continues without an answer"
        return UsageError(f"the question of {late[0].agent} could be answered until {until}", hint=hint)
    what = f"{whom.agent} is not waiting for an answer" if whom.agent else "no agent is waiting for an answer"
    if whom.run:
        return UsageError(what, hint=f"raymond status {whom.run.id} shows what its agents are doing")
    return UsageError(f"{what} in this project", hint="raymond inbox lists the questions of all projects")


def perhaps_others(one: Asked, found: Open) -> UsageError:
    """The error when a run that cannot be read may ask as well."""
    what = f"{one.question.workflow_id} may not be the only one that asks: {', '.join(found.unreadable)} cannot be read"
    return UsageError(what, hint=f"say which one: {_way(one, 'TEXT')}")


def several(found: list[Asked]) -> UsageError:
    """The error when it is unclear who is answered."""
    more = f", and {len(found) - 5} more" if len(found) > 5 else ""
    names = ", ".join(
        f"{named(one.question.agent, one.question.label)} of {one.question.workflow_id}" for one in found[:5]
    )
    what = f"several agents are waiting for an answer: {names}{more}"
    return UsageError(what, hint=f"say which one: {_way(found[0], 'TEXT')}")
