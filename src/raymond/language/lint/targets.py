"""Whether every state that is named exists."""

from collections.abc import Iterator

from raymond.errors import Diagnostic
from raymond.language import findings, frontmatter, reach
from raymond.language.frontmatter import Mark
from raymond.language.refusal import Refusal
from raymond.language.workflow import State, Workflow, mark_of, resolve


def in_policy(workflow: Workflow, state: State) -> Iterator[Diagnostic]:
    """Names in the policy of a state that lead to no state."""
    for path, name in reach.in_policy(state.policy):
        yield from look_up(workflow, name, mark_of(workflow, state, path))


def look_up(workflow: Workflow, name: str, mark: Mark) -> Iterator[Diagnostic]:
    """What is wrong with a name at `mark`; a variable or a placeholder may become any name."""
    if "{{" in name or name in reach.PLACEHOLDERS:
        return
    found = resolve(workflow, name)
    if isinstance(found, Refusal):
        yield frontmatter.diagnose(mark, findings.OF_NAME[found.kind], found.reason, found.hint)
