"""Whether every state that is named exists."""

import re
from collections.abc import Iterator

from raymond.errors import Diagnostic
from raymond.language import findings, frontmatter, reading
from raymond.language.allowed_transitions import FIELDS
from raymond.language.frontmatter import Mark, Path
from raymond.language.policy import Policy
from raymond.language.refusal import Refusal
from raymond.language.scanner import Tag
from raymond.language.tags import TAGS
from raymond.language.workflow import State, Workflow, mark_of, resolve

_PLACEHOLDER = re.compile(r"\.\.\.|…")


def in_policy(workflow: Workflow, state: State) -> Iterator[Diagnostic]:
    """Names in the policy of a state that lead to no state."""
    for path, name in _names(state.policy):
        yield from look_up(workflow, name, mark_of(workflow, state, path))


def look_up(workflow: Workflow, name: str, mark: Mark) -> Iterator[Diagnostic]:
    """What is wrong with a name at `mark`; a variable or a placeholder may become any name."""
    if "{{" in name or _PLACEHOLDER.fullmatch(name):
        return
    found = resolve(workflow, name)
    if isinstance(found, Refusal):
        yield frontmatter.diagnose(mark, findings.OF_NAME[found.kind], found.reason, found.hint)


def of_tag(tag: Tag) -> Iterator[tuple[str, str]]:
    """The states that a tag names, each with the attribute it is in; empty for the body."""
    form = TAGS[tag.name]
    if form.body.kind == "state" and tag.body.strip():
        yield tag.body.strip(), ""
    for name, known in form.attributes.items():
        if known.kind == "state" and tag.attributes.get(name):
            yield tag.attributes[name].strip(), name


def _names(policy: Policy) -> Iterator[tuple[Path, str]]:
    for index, allowed in enumerate(policy.allowed_transitions):
        for field, known in FIELDS[allowed.tag].items():
            if known.kind == "state" and field in allowed.fields:
                yield ("allowed_transitions", index, field), allowed.fields[field]
    for key in ("then", "on_error", "on_fail"):
        if name := getattr(policy, key):
            yield (key,), name
    if policy.evaluator:
        if policy.evaluator.prompt:
            yield ("evaluator", "prompt"), policy.evaluator.prompt
        answers: dict[Path, str] = {("verdicts", key): value for key, value in policy.evaluator.verdicts.items()}
        for path, verdict in (answers | {("default",): policy.evaluator.default}).items():
            for tag in reading.scan(verdict):
                for name, _ in of_tag(tag):
                    yield ("evaluator", *path), name
