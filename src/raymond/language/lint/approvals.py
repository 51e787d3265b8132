"""Questions that a person must approve, and whose timeout continues as if one had."""

from collections.abc import Iterable, Iterator, Mapping

from raymond.errors import Diagnostic
from raymond.language import frontmatter
from raymond.language.lint import places
from raymond.language.scanner import Tag
from raymond.language.workflow import State, Workflow, mark_of

HINT = 'name the state to continue at then: timeout_next="DECLINED.md"'
"""The way out in a tag."""


def in_policy(workflow: Workflow, state: State) -> Iterator[Diagnostic]:
    """Entries of `allowed_transitions` that let a timeout approve."""
    for at, allowed in enumerate(state.policy.allowed_transitions):
        if message := problem(allowed.fields):
            mark = mark_of(workflow, state, ("allowed_transitions", at, "timeout"))
            hint = "name the state to continue at then: timeout_next: DECLINED.md"
            yield frontmatter.diagnose(mark, "timeout-approves", message, hint)


def in_tags(state: State, tags: Iterable[Tag]) -> Iterator[Diagnostic]:
    """Those among the `tags` of a prompt that let a timeout approve."""
    for tag in tags:
        if message := problem(tag.attributes):
            yield frontmatter.diagnose(places.attribute(state, tag, "timeout"), "timeout-approves", message, HINT)


def problem(given: Mapping[str, str]) -> str:
    """What is wrong with a question that has these attributes; empty when nothing is."""
    if "approve" not in given or "timeout" not in given or "timeout_next" in given:
        return ""
    where = given.get("next", "").strip() or "its `next`"
    return f"if nobody answers within {given['timeout'].strip()}, this continues at {where} without approval"
