"""Refusal: why something that was asked for cannot be done."""

from typing import Literal, TypeAlias

from msgspec import Struct

WIDTH = 40
"""Characters of a foreign text that are shown in a line of ours."""
RefusalKind: TypeAlias = Literal[
    # What an output says.
    "none",  # it has no transition
    "several",  # it has too many transitions, or they contradict each other
    "attribute",  # a tag has an attribute that it does not take, or has one twice
    "incomplete",  # a tag lacks an attribute or its body
    "value",  # an attribute has a value that it cannot have
    "too_long",  # the text is over the limit
    # Which state a name means.
    "unknown_state",  # no state has that name
    "ambiguous_state",  # several states have that name
    "wrong_platform",  # the state cannot run on this machine
    "unsafe_name",  # the name could point outside the workflow
    # What a transition would do.
    "not_allowed",  # the policy of the state does not allow it
    "directory",  # `cd` leads nowhere, or outside
    "file",  # a file of a question is missing, or outside
    "too_many_agents",  # the forks would exceed max_agents
    "in_place",  # a call where the conversation cannot branch
    "visits",  # the state was visited max_visits times
    # What a person asks of a run.
    "run_ended",  # the run is over
    "no_such_agent",  # no agent has that name, or it has ended
    "not_asking",  # nobody is waiting for an answer
    "several_asking",  # it is unclear whose question is answered
    "agent_running",  # the agent has to be stopped first
    "agent_status",  # this cannot be asked of an agent with that status
    "not_driven",  # only a process that drives the run could do it
    "too_late",  # another request came first
    "overdue",  # the time in which the question could be answered is over
    "other_question",  # the agent asks something else now
    "from_step",  # a step may not ask for it
    "needs_person",  # only a person at a terminal can answer this
    "needs_review",  # only a person at a terminal can accept or reject this
    "no_text",  # an answer has to say something
    "not_a_choice",  # it is none of the answers that the question offers
    "changed",  # a file of the question is another one than when it was asked
    "hidden",  # a file of the question cannot be shown
    "out_of_reach",  # the process that drives the run cannot be asked from here
]


class Refusal(Struct, frozen=True):
    """Why something that was asked for cannot be done; code looks at `kind`, people read the rest."""

    kind: RefusalKind
    reason: str
    hint: str = ""
    """What would be right."""


def cut(text: str) -> str:
    """A text that somebody else wrote, as it is shown in a reason."""
    return text if len(text) <= WIDTH else text[: WIDTH - 3] + "..."
