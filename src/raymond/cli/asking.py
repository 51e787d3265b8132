"""The questions of agents at this terminal: which one is meant, how it is put, and the answer that is sent."""

import sys
from collections.abc import Sequence
from difflib import get_close_matches
from time import time as now
from typing import TextIO

from msgspec import Struct

from raymond import pasted
from raymond.cli import choice, delivery, prompt
from raymond.control import naming, questions, runs
from raymond.control.handle import RunHandle
from raymond.control.questions import Asked, Found, Open
from raymond.errors import RunNotFound, UsageError
from raymond.faces import errors, words
from raymond.faces import question as faces_of_question
from raymond.faces.foreign_text import height_of, hung, width_of
from raymond.faces.words import named
from raymond.language import choices
from raymond.language.refusal import cut
from raymond.text import visible
from raymond.views.questions import Question

_SHORT = 4
"""Characters of a word that is like a name only if it is that name in other letters."""
_NEAR = 0.8
_USAGE = 'raymond answer ID AGENT "TEXT"'


class Addressee(Struct, frozen=True):
    """Who is answered."""

    run: RunHandle | None
    """None: whoever asks here."""
    agent: str = ""
    text: str | None = None
    """The answer; None when it is still to be asked for."""


def addressee_of(words: tuple[str, ...], *, has_text: bool) -> Addressee:
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


def questions_for(whom: Addressee) -> Open:
    """The questions that can be meant: of this project, or of all when it has no runs, unless it is answered."""
    if whom.run:
        found = questions.of_run(whom.run.project, whom.run.id)
    else:
        found = questions.of_runs(every=whom.text is None and not whom.agent and not runs.here().ids())
    meant = [one for one in found.asked if not whom.agent or one.question.is_called(whom.agent)]
    return Open(meant, found.unreadable, found.names)


def none_asks(whom: Addressee) -> UsageError:
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


# At this terminal


class Answered(Struct, frozen=True):
    """The run whose question was answered."""

    run: RunHandle
    is_driven: bool
    open: int = 0
    """How many questions of the run wait for an answer still."""


def ask(run: RunHandle) -> Answered | None:
    """Show a question of the run and ask; None when the person left it open."""
    return put(run, choose(Addressee(run), 0, False))


def choose(whom: Addressee, number: int, has_text: bool) -> Asked:
    """The question that is meant."""
    found = questions_for(whom)
    fitting = [one for one in found.asked if number in (0, one.question.number)]
    if not fitting:
        if not whom.run and not runs.here().ids():
            naming.named(changes=True, verb="answer")  # raises: says where there are runs
        raise none_asks(whom)
    if len(fitting) == 1:
        if has_text and not whom.run and found.unreadable:
            raise perhaps_others(fitting[0], found)
        return fitting[0]
    if has_text or not prompt.can_ask():
        raise several(fitting)
    for place, one in enumerate(fitting, 1):
        print("\n".join(_fitted(f"{place:>3}  {faces_of_question.mention(one.question, now=now())}", sys.stdout)))
    while True:
        try:
            typed = prompt.ask(f"which one? 1-{len(fitting)} > ").strip()
        except EOFError:
            raise several(fitting) from None
        if typed.isdecimal() and 1 <= int(typed) <= len(fitting):
            return fitting[int(typed) - 1]
        called = [one for one in fitting if one.question.is_called(typed)]
        if len(called) == 1:
            return called[0]


def put(run: RunHandle, chosen: Asked, *, unseen: bool = False) -> Answered | None:
    """Show the question, and let the person at this terminal answer it."""
    asked = chosen.question
    seen = _show(chosen)
    if not prompt.can_ask():
        sys.stdout.flush()
        what = "there is no answer, and no terminal to type it on"
        raise UsageError(what, hint=_elsewhere(asked, unseen))
    print("\n".join(_above_prompt(asked)))
    while True:
        try:
            said = prompt.ask("> ")
        except EOFError:
            print(f"\nnot answered; the question stays open: raymond answer {asked.workflow_id}", file=sys.stderr)
            return None
        if not said.strip():
            continue
        try:
            return send(run, asked.agent, said, asked.number, seen=seen, unseen=unseen)
        except UsageError as error:
            if not _is_open(run, asked):
                raise
            print(errors.error(error), file=sys.stderr)
            if _digests(questions.files_of(asked)) != seen:
                seen = _show(chosen)


def _elsewhere(asked: Question, unseen: bool) -> str:
    """How to answer where there is no terminal, if that is possible."""
    from raymond.control import request

    changed = questions.changed(asked)
    if changed:
        return f"{', '.join(changed)} changed since it asked: {request.seen_first(asked.workflow_id)}"
    way = f"raymond answer {asked.workflow_id} {asked.agent} TEXT"
    return f"{way} --unseen" if unseen else way


def _show(chosen: Asked) -> dict[str, str]:
    """Print the question with its files; what each of them was: path -> mark."""
    found = questions.files_of(chosen.question)
    where, width, height = chosen.project.tree, width_of(sys.stdout), height_of(sys.stdout)
    with words.times_for(sys.stdout):
        shown = faces_of_question.lines(chosen.question, found, now=now(), where=where, width=width)
        if 0 < height <= len(shown) + len(_above_prompt(chosen.question)):  # and there is the prompt
            shown += faces_of_question.reminder(chosen.question, len(shown), questions.way(chosen), width)
    print("\n".join(shown))
    return _digests(found)


def _above_prompt(asked: Question) -> list[str]:
    """What is said above the prompt."""
    return _fitted(f"answer {named(asked.agent, asked.label)}, or leave the question open with Ctrl-D:", sys.stdout)


def _fitted(text: str, stream: TextIO) -> list[str]:
    """A line of ours that names others: what the terminal would wrap stays in the margin."""
    margin, width = faces_of_question.MARGIN, width_of(stream)
    return hung(visible(text), margin, width)


def _digests(found: list[Found]) -> dict[str, str]:
    return {one.path: one.mark for one in found}


def _is_open(run: RunHandle, asked: Question) -> bool:
    """Whether another answer may be taken."""
    return any(one.question.number == asked.number for one in questions.of_run(run.project, run.id).asked)


def send(
    run: RunHandle, agent: str, said: str, question: int, *, seen: dict[str, str] | None = None, unseen: bool = False
) -> Answered:
    """Send an answer; `seen` is what was shown of the files, if this terminal shows the question."""
    from raymond.control import request
    from raymond.faces.lines import Lines

    told = request.answer(run.project, run.id, agent, said, question=question, seen=seen, unseen=unseen, face=Lines())
    asked = questions.of_run(run.project, run.id).asked
    who = agent or (asked[0].question.agent if len(asked) == 1 else "")
    left = delivery.words(told, run.id, who, is_shown=seen is not None)
    if left:
        print(left, file=sys.stderr)
    return Answered(run, is_driven=bool(left), open=len(asked))
