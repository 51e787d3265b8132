"""Entries of `allowed_transitions` that leave out a state, and leave the agent none to choose."""

from collections.abc import Iterator, Sequence

from raymond.errors import Diagnostic
from raymond.language import frontmatter
from raymond.language.allowed_transitions import FIELDS, Allowed, Entries, bare
from raymond.language.tags import TAGS
from raymond.language.workflow import State, Workflow, mark_of


def check(workflow: Workflow, state: State) -> Iterator[Diagnostic]:
    """Every entry without a state that its tag needs, if only states that are named for something else are left."""
    allowed = state.policy.allowed_transitions
    entries = Entries(allowed)
    if not entries.named:
        return  # the agent may name any state
    for at, entry in enumerate(allowed):
        missing = [name for name in entries.chosen(entry) if FIELDS[entry.tag][name].kind == "state"]
        left = [_choices(allowed, at, name) for name in missing]
        if not all(left) or len(set[str]().union(*left)) < len(missing):
            without = " and ".join(f"no `{name}`" for name in missing)
            message = f"this `{entry.tag}` has {without}, {_left(entries.named)}"
            hint = f"say what you mean: {', '.join(f'{name}: NEXT.md' for name in missing)}"
            mark = mark_of(workflow, state, ("allowed_transitions", at))
            yield frontmatter.diagnose(mark, "no-choice", message, hint)


def _left(named: Sequence[str]) -> str:
    """What the agent can name; several states are a choice, but each of them is there for something else."""
    if len(named) == 1:
        return f"so the agent can only name {named[0]} there"
    return f"and {', '.join(named[:-1])} and {named[-1]}, which the agent can name there, are named for something else"


def _choices(allowed: Sequence[Allowed], at: int, missing: str) -> set[str]:
    """The states in other entries that could be meant for what is missing in the one at `at`."""
    begins = _begins(allowed[at].tag, missing)
    return {
        bare(value)
        for index, other in enumerate(allowed)
        if index != at and "approve" not in other.fields
        for name, value in other.fields.items()
        if name in FIELDS[other.tag] and FIELDS[other.tag][name].kind == "state"
        if begins or not _begins(other.tag, name)
    }


def _begins(tag: str, name: str) -> bool:
    """Whether a subtask or a new agent begins at the state with that name, so that whoever starts it is elsewhere."""
    return name == TAGS[tag].body_key and any(one.required for one in TAGS[tag].attributes.values())
