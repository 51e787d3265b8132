"""Names in double braces that get no value."""

import re
from collections.abc import Collection, Iterator
from functools import lru_cache

from raymond.errors import Diagnostic
from raymond.language import frontmatter, reading, template
from raymond.language.lint import places
from raymond.language.tags import BUILT_IN, TAGS
from raymond.language.workflow import State, Workflow

_FORK = r"<fork\s([^<>]*)>"
_SET = r"([A-Za-z_]\w*)="
_SHORTEST = 4
_ALLOWED = "allowed_transitions: [{tag: goto, target: NEXT.md}]"


def check(workflow: Workflow, state: State, given: Collection[str]) -> Iterator[Diagnostic]:
    """Names that are near one that has a value, and includes of texts that do not exist; `given` are those of --var."""
    known: frozenset[str] | None = None
    for name, at in template.names(state.body):
        if name in BUILT_IN and (name != "transitions" or state.policy.allowed_transitions):
            continue
        if name.startswith("include:"):
            yield from _include(workflow, state, name.removeprefix("include:"), at)
            continue
        known = frozenset({*BUILT_IN, *given, *_of_forks(workflow)}) if known is None else known
        message, hint = f"`{{{{{name}}}}}` has no value", "" if name in known else _near(name, known)
        if name == "transitions":
            message, hint = f"{message}: this state has no allowed_transitions", _ALLOWED
        if hint:
            mark = places.place(state, at, at + len(name) + 4)
            yield frontmatter.diagnose(mark, "unbound-variable", message, hint)


def _include(workflow: Workflow, state: State, name: str, at: int) -> Iterator[Diagnostic]:
    if name not in workflow.lib:
        mark = places.place(state, at, at + len("{{include:}}") + len(name))
        hint = frontmatter.suggest(name, list(workflow.lib)) or f"add lib/{name}, or remove this"
        yield frontmatter.diagnose(mark, "missing-include", f"there is no `lib/{name}` to include", hint)


@lru_cache(maxsize=256)
def _near(name: str, known: frozenset[str]) -> str:
    import difflib

    close = difflib.get_close_matches(name, known, n=1, cutoff=0.75) if len(name) >= _SHORTEST else []
    return f"did you mean {{{{{close[0]}}}}}?" if close else ""


def _of_forks(workflow: Workflow) -> Iterator[str]:
    """The variables that forks in prompts, policies and scripts set."""
    for state in workflow.states.values():
        for allowed in state.policy.allowed_transitions:
            if TAGS[allowed.tag].variables:
                yield from allowed.fields
        if state.kind == "script":
            for fork in re.findall(_FORK, state.body):
                yield from re.findall(_SET, fork)
        elif "<fork" in state.body:
            for tag in reading.scan(state.body):
                if TAGS[tag.name].variables:
                    yield from tag.attributes
