"""Where an author says that a finding is not a mistake, and what that silences."""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from raymond.errors import Diagnostic
from raymond.language import frontmatter
from raymond.language.findings import FINDINGS
from raymond.language.frontmatter import Mark
from raymond.language.lint.places import place
from raymond.language.settings import SETTINGS_FILE
from raymond.language.workflow import State, Workflow
from raymond.patterns import regex

_COMMENT = regex(r"<!--\s*raymond:\s*ignore\b([^>]*?)-->")

_UNTOLD = ("no-transition", "dead-end")
"""One mistake: which of the two it is depends on the other files, so that silencing the other is a precaution."""
_AT_START = ("unknown-reply", "unknown-effort", "unknown-setting", "bash-syntax", "unbound-variable", "misnamed-file")
"""Whether there is one of these depends on how the run is started."""


class Ignore(Struct, frozen=True):
    """A finding that an author silences, and where."""

    id: str
    mark: Mark


def in_settings(workflow: Workflow) -> list[Ignore]:
    """What workflow.yaml silences."""
    return [Ignore(id, workflow.marks["lint", "ignore", id]) for id in workflow.settings.lint_ignore]


def in_comments(state: State) -> Iterator[Ignore | Diagnostic]:
    """What the comments of a state silence, and those that give no reason."""
    if "raymond:" not in state.body:
        return
    for comment in _COMMENT.finditer(state.body):
        id, _, reason = comment[1].strip().partition(" ")
        mark = place(state, comment.start(), comment.end())
        if reason.strip():
            yield Ignore(id, mark)
            continue
        message = f"ignoring `{id}` needs a reason" if id else "say which finding to ignore, and why"
        hint = f"<!-- raymond: ignore {id or 'missing-target'} why it is not a mistake here -->"
        yield frontmatter.diagnose(mark, "bad-ignore", message, hint)


def silence(found: Iterable[Diagnostic], ignores: list[Ignore]) -> Iterator[Diagnostic]:
    """What is left of `found`, and what is wrong with `ignores`."""
    used: set[Ignore] = set()
    for one in found:
        by = [ignore for ignore in ignores if ignore.id == one.id and _is_about(ignore, one)]
        used.update(by)
        if one.id in _UNTOLD:
            used.update(ignore for ignore in ignores if ignore.id in _UNTOLD and _is_about(ignore, one))
        if not by or FINDINGS[one.id].firm:
            yield one
    for ignore in ignores:
        yield from _check(ignore, used)


def _is_about(ignore: Ignore, one: Diagnostic) -> bool:
    return ignore.mark.file in (one.file, SETTINGS_FILE)


def _check(ignore: Ignore, used: set[Ignore]) -> Iterator[Diagnostic]:
    id, finding = ignore.id, FINDINGS.get(ignore.id)
    if finding is None:
        hint = frontmatter.suggest(id, FINDINGS.keys())
        yield frontmatter.diagnose(ignore.mark, "bad-ignore", f"there is no finding `{id}`", hint)
    elif finding.firm:
        yield frontmatter.diagnose(ignore.mark, "bad-ignore", f"`{id}` cannot be ignored")
    elif ignore not in used and not finding.later and id not in _AT_START:
        yield frontmatter.diagnose(ignore.mark, "unused-ignore", f"there is no `{id}` to ignore", "remove it")
