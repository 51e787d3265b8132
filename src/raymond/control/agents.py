"""Which agent of a run a word means: its name, or a label that no other agent has."""

from difflib import get_close_matches

from raymond.errors import UsageError
from raymond.store import journal
from raymond.store.project import Project
from raymond.views import questions
from raymond.views.questions import AgentNames

_NAMED = 20
"""Agents that are named to somebody who named none of them."""


def of_run(project: Project, id: str) -> AgentNames:
    """What the agents of a run are called now."""
    return questions.agent_names(journal.read(project.run(id)).run)


def named(names: AgentNames, word: str) -> str:
    """The name of the agent that a word means; empty when no agent is called so, an error when several are."""
    found = names.of(word)
    if len(found) > 1:
        raise several(word, found)
    return found[0] if found else ""


def meant(project: Project, id: str, word: str) -> str:
    """The name of the agent that a word means; the word itself when no agent is called so."""
    return named(of_run(project, id), word) or word


def several(word: str, found: tuple[str, ...]) -> UsageError:
    """The error for a label that several agents have."""
    some = ", ".join(found[:_NAMED]) + (f" and {len(found) - _NAMED} more" if len(found) > _NAMED else "")
    return UsageError(f"{len(found)} agents have the label `{word}`: {some}", hint="name one of them")


def unknown(id: str, names: AgentNames, word: str) -> UsageError:
    """The error for a word that no agent is called by."""
    near = get_close_matches(word, [*names.names, *names.labels], 1)
    did_you_mean = f"did you mean `{near[0]}`? " if near else ""
    more = f" and {len(names.names) - _NAMED} more" if len(names.names) > _NAMED else ""
    hint = f"{did_you_mean}its agents: {', '.join(names.shown()[:_NAMED])}{more}"
    return UsageError(f"there is no agent `{word}` in {id}", hint=hint)
