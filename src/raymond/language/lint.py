"""Workflow -> [Diagnostic]: what is wrong with a definition before it runs."""

import re
import warnings
from collections.abc import Iterator, Mapping
from itertools import pairwise

import msgspec
from msgspec import Struct

from raymond import durations, redaction
from raymond.errors import Diagnostic
from raymond.language import frontmatter, reading
from raymond.language.allowed_transitions import FIELDS
from raymond.language.frontmatter import Mark, Path
from raymond.language.refusal import Refusal
from raymond.language.scanner import Tag, read_opening
from raymond.language.settings import SETTINGS_FILE
from raymond.language.tags import EXAMPLES, TAGS, VARIABLE
from raymond.language.workflow import FINDINGS, State, Workflow, extension, mark_of, resolve

ERRORS = frozenset(
    "no-entry ambiguous-entry bad-frontmatter unknown-key bad-value missing-target ambiguous-target wrong-platform"
    " unsafe-target missing-return missing-next next-mismatch unknown-attribute force-implicit-invalid"
    " wider-permission unheeded-right call-in-place secret-in-state script-syntax".split()
)
WARNINGS = frozenset(
    "unreachable-state dead-end call-never-returns unbounded-cycle policy-body-mismatch unused-transition"
    " unbound-variable backend-change gate-command-unsafe parallel-writers fork-never-waited script-not-analysed"
    " bad-ignore unused-ignore".split()
)
_FIRM = frozenset(
    "no-entry ambiguous-entry bad-frontmatter unsafe-target force-implicit-invalid wider-permission"
    " unheeded-right call-in-place".split()
)
"""A run cannot do without these: no comment silences them."""

_IGNORE = re.compile(r"<!--\s*raymond:\s*ignore\b([^>]*?)-->")
_MISSING = {"return": "missing-return", "next": "missing-next"}
_PLACEHOLDER = re.compile(r"\.\.\.|…")


class Ignore(Struct, frozen=True):
    """A place where an author says that a finding is no mistake."""

    id: str
    mark: Mark


def errors(workflow: Workflow) -> list[Diagnostic]:
    """What stops `run` before money is spent."""
    return [found for found in check(workflow) if found.severity == "error"]


def check(workflow: Workflow) -> list[Diagnostic]:
    """Everything found, in the order of files and lines."""
    found = list(workflow.diagnostics)
    ignores = [Ignore(id, workflow.marks["lint", "ignore", id]) for id in workflow.settings.lint_ignore]
    # One look at all of them: a workflow may have a thousand states.
    suspicious = redaction.suspects("\n".join(state.body for state in workflow.states.values()))
    for state in workflow.states.values():
        found += _ignores(state, ignores)
        found += _secrets(state) if suspicious else ()
        if extension(state.name) not in workflow.runnable:
            continue
        found += _policy(workflow, state)
        found += _body(workflow, state) if state.kind == "prompt" else _script(workflow, state)
    return sorted(dict.fromkeys(_silence(found, ignores)), key=lambda one: (one.file, one.line, one.column))


def polluting(workflow: Workflow, backends: Mapping[str, str]) -> Iterator[Diagnostic]:
    """Every place where a call would write into its caller's conversation; `backends` of states that cannot branch."""
    for name, backend in backends.items():
        state = workflow.states[name]
        if state.policy.in_place:
            continue
        message = f"{backend} cannot branch: a call would go on in the conversation of its caller"
        hint = "`<function>` sees nothing of it; or say that this is meant: in_place: true"
        for at, allowed in enumerate(state.policy.allowed_transitions):
            if allowed.tag == "call":
                mark = mark_of(workflow, state, ("allowed_transitions", at))
                yield frontmatter.diagnose(mark, "call-in-place", message, hint)
        for tag in reading.scan(state.body):
            if tag.name == "call" and tag.quoted in ("", "code"):
                yield frontmatter.diagnose(_spot(state, tag), "call-in-place", message, hint)


def _silence(found: list[Diagnostic], ignores: list[Ignore]) -> Iterator[Diagnostic]:
    used: set[Ignore] = set()
    for one in found:
        by = [ignore for ignore in ignores if ignore.id == one.id and ignore.mark.file in (one.file, SETTINGS_FILE)]
        used.update(by)
        if not by or one.id in _FIRM:
            yield one
    for ignore in ignores:
        id = ignore.id
        if id not in ERRORS | WARNINGS:
            hint = frontmatter.suggest(id, ERRORS | WARNINGS)
            yield frontmatter.diagnose(ignore.mark, "bad-ignore", f"there is no `{id}`", hint, severity="warning")
        elif id in _FIRM:
            yield frontmatter.diagnose(ignore.mark, "bad-ignore", f"`{id}` cannot be ignored", severity="warning")
        elif ignore not in used and id in ERRORS:
            message = f"there is no `{id}` to ignore"
            yield frontmatter.diagnose(ignore.mark, "unused-ignore", message, "remove it", severity="warning")


def _ignores(state: State, ignores: list[Ignore]) -> Iterator[Diagnostic]:
    if "raymond:" not in state.body:
        return
    for comment in _IGNORE.finditer(state.body):
        id, _, reason = comment[1].strip().partition(" ")
        mark = _place(state, comment.start(), comment.end())
        if reason.strip():
            ignores.append(Ignore(id, mark))
            continue
        message = f"ignoring `{id}` needs a reason" if id else "say which finding to ignore, and why"
        hint = f"<!-- raymond: ignore {id or 'missing-target'} why it is no mistake here -->"
        yield frontmatter.diagnose(mark, "bad-ignore", message, hint, severity="warning")


def _secrets(state: State) -> Iterator[Diagnostic]:
    for line, column, length, what in redaction.lines(state.body):
        mark = frontmatter.mark(state.name, state.body, line, column, length)
        shown = msgspec.structs.replace(mark, line=state.line + line - 1, source="", column=column)
        hint = "set it in the environment that Raymond is started in, and read it there"
        yield frontmatter.diagnose(shown, "secret-in-state", f"this is {what}", hint)


def _policy(workflow: Workflow, state: State) -> Iterator[Diagnostic]:
    for path, name in _names(state):
        yield from _resolve(workflow, name, mark_of(workflow, state, path))


def _names(state: State) -> Iterator[tuple[Path, str]]:
    policy = state.policy
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
                for name, _ in _targets(tag):
                    yield ("evaluator", *path), name


def _resolve(workflow: Workflow, name: str, mark: Mark) -> Iterator[Diagnostic]:
    if "{{" in name or _PLACEHOLDER.fullmatch(name):
        return
    found = resolve(workflow, name)
    if isinstance(found, Refusal):
        yield frontmatter.diagnose(mark, FINDINGS[found.kind], found.reason, found.hint)


def _script(workflow: Workflow, state: State) -> Iterator[Diagnostic]:
    # Another interpreter may know another syntax.
    if not state.name.endswith(".py") or workflow.settings.python:
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(state.body, state.name, "exec", dont_inherit=True)
    except SyntaxError as error:
        line, column = error.lineno or 0, max(error.offset or 1, 1)
        length = (error.end_offset or 0) - column if error.end_lineno == error.lineno else 1
        mark = frontmatter.mark(state.name, state.body, line, column, length)
        yield frontmatter.diagnose(mark, "script-syntax", f"this is no Python: {error.msg}")
    except (ValueError, RecursionError, MemoryError) as error:
        yield frontmatter.diagnose(Mark(state.name), "script-syntax", f"this is no Python: {error}")


def _body(workflow: Workflow, state: State) -> Iterator[Diagnostic]:
    # Fences and comments hold examples; inline code is how authors write a tag they mean.
    found = [tag for tag in reading.scan(state.body) if tag.name != "print" and tag.quoted in ("", "code")]
    meant = [tag for tag in found if "{{" not in _target(tag)]
    for tag in meant:
        wrong = [*_attributes(state, tag), *_needs(state, tag, found)]
        for name, where in _targets(tag):
            wrong += _resolve(workflow, name, _spot(state, tag, where))
        yield from wrong or _refused(state, tag)
    yield from _mismatches(state, [tag for tag in meant if tag.name == "fork"])


def _target(tag: Tag) -> str:
    return tag.body.strip() if TAGS[tag.name].body.kind == "state" else ""


def _targets(tag: Tag) -> Iterator[tuple[str, str]]:
    """The states a tag names, each with the attribute it is in; empty for the body."""
    if target := _target(tag):
        yield target, ""
    for name, known in TAGS[tag.name].attributes.items():
        if known.kind == "state" and tag.attributes.get(name):
            yield tag.attributes[name].strip(), name


def _attributes(state: State, tag: Tag) -> Iterator[Diagnostic]:
    form = TAGS[tag.name]
    for name, value in tag.attributes.items():
        known = form.attributes.get(name)
        if known:
            if known.kind == "duration" and "{{" not in value and durations.parse(value) is None:
                message, hint = f"`{name}`: `{value}` is not a duration", "write it like 90s, 10m or 2h"
                yield frontmatter.diagnose(_spot(state, tag, name), "bad-value", message, hint)
        elif not form.variables or not VARIABLE.fullmatch(name):
            takes = f"it takes: {', '.join(form.attributes)}" if form.attributes else "it takes none"
            hint = frontmatter.suggest(name, form.attributes.keys()) or takes
            message = f"`<{tag.name}>` has no attribute `{name}`"
            yield frontmatter.diagnose(_spot(state, tag, name), "unknown-attribute", message, hint)


def _needs(state: State, tag: Tag, tags_there: list[Tag]) -> Iterator[Diagnostic]:
    for name, known in TAGS[tag.name].attributes.items():
        if not known.required or tag.attributes.get(name, "").strip():
            continue
        # Other tags of the same output may say it.
        if known.unless and any(other.name in known.unless or other.attributes.get(name) for other in tags_there):
            continue
        message = f"`<{tag.name}>` needs a `{name}` attribute"
        hint = _write(tag, {name: EXAMPLES[known.kind]})
        yield frontmatter.diagnose(_spot(state, tag), _MISSING.get(name, "bad-value"), message, hint)


def _refused(state: State, tag: Tag) -> Iterator[Diagnostic]:
    plain = dict(tag.attributes)
    for name, known in TAGS[tag.name].attributes.items():
        if known.kind == "duration" and "{{" in plain.get(name, ""):
            plain[name] = EXAMPLES[known.kind]
    found = reading.transition(msgspec.structs.replace(tag, attributes=plain))
    if isinstance(found, Refusal):
        yield frontmatter.diagnose(_spot(state, tag), "bad-value", found.reason, found.hint)


def _mismatches(state: State, forks: list[Tag]) -> Iterator[Diagnostic]:
    """Forks that follow each other belong to one output and must agree; those with text between may be alternatives."""
    for first, second in pairwise(forks):
        end = _opening(state, first) + len(first.body) + len("</fork>")
        one, other = first.attributes.get("next", ""), second.attributes.get("next", "")
        if one and other and one != other and not state.body[end : second.start].strip(" \t\r\n`-*"):
            message = f"forks of one output must agree on `next`: `{one}` here is followed by `{other}`"
            hint = _write(second, {"next": one})
            yield frontmatter.diagnose(_spot(state, second, "next"), "next-mismatch", message, hint)


def _write(tag: Tag, changed: Mapping[str, str]) -> str:
    attributes = "".join(f' {name}="{value}"' for name, value in {**changed, **tag.attributes, **changed}.items())
    return f"<{tag.name}{attributes}>{' '.join(tag.body.split())}</{tag.name}>"


def _opening(state: State, tag: Tag) -> int:
    opening = read_opening(state.body, tag.start + 1 + len(tag.name), len(state.body))
    assert opening
    return opening.stop


def _spot(state: State, tag: Tag, attribute: str | None = None) -> Mark:
    """The opening of a tag, one of its attributes, or with `""` its body."""
    stop = _opening(state, tag)
    if attribute is None:
        return _place(state, tag.start, stop)
    if not attribute:
        start = stop + len(tag.body) - len(tag.body.lstrip())
        return _place(state, start, start + len(tag.body.strip())) if tag.body.strip() else _spot(state, tag)
    found = re.compile(rf"\s({re.escape(attribute)}=(?:\"[^\"]*\"|'[^']*'))").search(state.body, tag.start, stop)
    return _place(state, *found.span(1)) if found else _spot(state, tag)


def _place(state: State, start: int, stop: int) -> Mark:
    line, column = frontmatter.position(state.body, start)
    mark = frontmatter.mark(state.name, state.body, line, column, stop - start)
    return msgspec.structs.replace(mark, line=state.line + line - 1)
