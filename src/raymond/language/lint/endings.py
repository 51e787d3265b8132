"""Whether a prompt tells its agent how to end its answer."""

import re
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from raymond import pasted
from raymond.errors import Diagnostic
from raymond.language import frontmatter, policy, reading, template
from raymond.language.frontmatter import Mark
from raymond.language.lint import places
from raymond.language.tags import TAGS
from raymond.language.workflow import ENTRIES, State, Workflow, bare

# Compiled at first use: most prompts have a tag.
_VARIABLE = r"\{\{[^{}\n]*\}\}"
_NAMES = "|".join(form.name for form in TAGS.values() if form.makes)
_TOLD = rf"&lt;(?:{_NAMES})\b|\b(?:{_NAMES})\b[^.\n]{{0,40}}\btags?\b|\btags?\b[^.\n]{{0,40}}\b(?:{_NAMES})\b"
"""A tag that is described rather than written."""
_ONE = (
    "end the prompt with a tag, e.g. <result>what you did</result>, or set allowed_transitions and use {{transitions}}"
)
LOOP = """an agent ends its answer with a tag that says what is next, and this prompt does not mention one
to send it to a fresh agent again and again, until a check is green: raymond ralph {file} --gate "make test"
to run it once, let {file} end with: Answer <result>done</result> when you are done."""
"""The way out for a prompt that was written for a shell loop."""


def check(workflow: Workflow, state: State, misspelt: Sequence[Diagnostic]) -> Iterator[Diagnostic]:
    """A state without text, or a prompt that names no transition; `misspelt` are the tags it almost has."""
    yield from check_text(state)
    if state.kind == "script" or is_told(workflow, state):
        return
    for one in misspelt:
        mark = Mark(one.file, one.line, one.column, one.source, one.length)
        message = f"{one.message}, and {state.name} has no other: every turn would be wasted"
        yield frontmatter.diagnose(mark, "no-transition", message, one.hint)
    if misspelt:
        return
    if state.name == workflow.entry and (len(workflow.states) == 1 or bare(state.name) not in ENTRIES):
        # What is to be copied has the name in a script.
        hint = LOOP.format(file=state.name, state=bare(state.name)) if pasted.is_plain(state.name) else _ONE
        found = frontmatter.diagnose(_mark(state), "no-transition", f"{state.name} has no tag", hint)
        yield replace(found, lines=tuple(hint.split("\n"))) if hint is not _ONE else found
    elif state.body.strip():
        message = f"{state.name} does not tell the agent how to end its answer"
        hint = "write {{transitions}} into it" if state.policy.allowed_transitions else _ONE
        yield frontmatter.diagnose(_mark(state), "dead-end", message, hint)


def check_text(state: State) -> Iterator[Diagnostic]:
    """A state without text."""
    if not state.body.strip():
        yield frontmatter.diagnose(
            _mark(state), "empty-state", f"{state.name} is empty", "write it, or remove the file"
        )


def is_told(workflow: Workflow, state: State) -> bool:
    """Whether the agent is told a transition, needs none, or gets its prompt from elsewhere."""
    body = state.body
    if policy.implicit(state.policy) or ("{{transitions}}" in body and state.policy.allowed_transitions):
        return True
    text = template.render(body, {}, workflow.lib) if "{{include:" in body else body
    if any(tag.name != "print" and tag.quoted != "comment" for tag in reading.scan(text)):
        return True
    if body.strip() and not re.sub(_VARIABLE, "", body).strip():
        return True
    return re.search(_TOLD, text) is not None


def _mark(state: State) -> Mark:
    """The first line of a prompt that says something."""
    start = len(state.body) - len(state.body.lstrip())
    if start == len(state.body):
        return Mark(state.name, state.line, 1)
    end = state.body.find("\n", start)
    return places.place(state, start, len(state.body) if end < 0 else end)
