"""Workflow -> [Diagnostic]: what is wrong with a definition before it runs."""

from collections.abc import Collection, Iterator, Mapping

import msgspec

from raymond import redaction
from raymond.errors import Diagnostic
from raymond.language import frontmatter, judges, reach
from raymond.language.lint import approvals, attributes, endings, entries, evaluators, ignores, places, scripts, targets
from raymond.language.policy_keys import GATE_KEYS
from raymond.language.workflow import State, Workflow, extension, mark_of

_ANYWHERE = ("secret-in-state", "gate-command-unsafe")
"""A secret would be kept, and an agent may name a state that nothing leads to."""
_MISSPELT = ("misspelt-tag", "unclosed-tag", "unquoted-attribute", "foreign-tag")


def errors(workflow: Workflow) -> list[Diagnostic]:
    """What stops `run` before money is spent."""
    return [found for found in check(workflow) if found.severity == "error"]


def check(workflow: Workflow, given: Collection[str] = ()) -> list[Diagnostic]:
    """Everything found in the states that the entry can lead to, and dangers anywhere, in the order of the files.

    `given` are the names that get a value when the run is started.
    """
    counted = reach.of(workflow).named
    found = list(workflow.diagnostics)
    unread = {one.file for one in found if one.severity == "error"}  # what its policy says is not known
    ignored = ignores.in_settings(workflow)
    sources = evaluators.sources(workflow, counted)
    # One look at all of them: a workflow may have a thousand states.
    suspicious = redaction.suspects("\n".join(state.body for state in workflow.states.values()))
    for state in workflow.states.values():
        for one in ignores.in_comments(state):
            if isinstance(one, ignores.Ignore):
                ignored.append(one)
            else:
                found.append(one)
        found += _secrets(state) if suspicious else ()
        found += _gate(workflow, state, is_counted=state.name in counted) if state.policy.has_gate else _no_gate(state)
        if state.name in judges.of(workflow) and state.name not in sources and state.name != workflow.entry:
            found += _judge(workflow, state, given)
        elif state.name in counted and extension(state.name) in workflow.runnable:
            found += targets.in_policy(workflow, state)
            found += evaluators.check(workflow, state, sources)
            found += approvals.in_policy(workflow, state)
            found += entries.check(workflow, state)
            found += _prompt(workflow, state, given) if state.kind == "prompt" else scripts.check(workflow, state)
            if state.name not in unread:
                found += endings.check(workflow, state, [one for one in found if _is_misspelt(one, state)])
    left = dict.fromkeys(one for one in ignores.silence(found, ignored) if _counts(one, workflow, counted))
    return sorted(_once(left), key=lambda one: (one.file, one.line, one.column))


def _prompt(workflow: Workflow, state: State, given: Collection[str]) -> Iterator[Diagnostic]:
    from raymond.language.lint import spelling, variables  # a workflow of scripts needs neither

    yield from attributes.check(workflow, state)
    yield from approvals.in_tags(state, attributes.meant(state))
    yield from spelling.check(workflow, state)
    if "{{" in state.body:
        yield from variables.check(workflow, state, given)
    if any("gate" in one.policy.late for one in workflow.states.values()):
        from raymond.language.lint import gates

        yield from gates.chooses(workflow, state)


def _judge(workflow: Workflow, state: State, given: Collection[str]) -> Iterator[Diagnostic]:
    """A judge answers with a word, so it needs no tag."""
    from raymond.language.lint import variables

    yield from evaluators.check_judge(workflow, state)
    yield from endings.check_text(state)
    if state.kind == "prompt" and "{{" in state.body:
        yield from variables.check(workflow, state, given)


def _gate(workflow: Workflow, state: State, *, is_counted: bool) -> Iterator[Diagnostic]:
    from raymond.language.lint import gates  # most states have none

    yield from gates.unsafe(workflow, state)
    if is_counted:
        yield from gates.check(workflow, state)


def _no_gate(state: State) -> Iterator[Diagnostic]:
    if any((key,) in state.marks for key in GATE_KEYS):
        from raymond.language.lint import gates

        yield from gates.without(state)


def _is_misspelt(one: Diagnostic, state: State) -> bool:
    return one.file == state.name and one.id in _MISSPELT


def _once(found: Collection[Diagnostic]) -> Iterator[Diagnostic]:
    """Each place once: that a prompt has no other tag says also that this one is misspelt."""
    told = {_place(one) for one in found if one.id == "no-transition"}
    return (one for one in found if one.id not in _MISSPELT or _place(one) not in told)


def _place(one: Diagnostic) -> tuple[str, int, int]:
    return one.file, one.line, one.column


def _counts(one: Diagnostic, workflow: Workflow, counted: Collection[str]) -> bool:
    """Whether a finding matters: not in a state that nothing leads to, unless it is dangerous there as well."""
    return one.file in counted or one.file not in workflow.states or one.id in _ANYWHERE


def polluting(workflow: Workflow, backends: Mapping[str, str]) -> Iterator[Diagnostic]:
    """Every place where a call would write into its caller's conversation; `backends` of states that cannot branch."""
    for name, backend in backends.items():
        state = workflow.states[name]
        if state.policy.in_place:
            continue
        message = f"{backend} cannot branch: a call would continue in its caller's conversation"
        hint = "use `<function>`, which starts fresh; or accept this with in_place: true"
        for at, allowed in enumerate(state.policy.allowed_transitions):
            if allowed.tag == "call":
                mark = mark_of(workflow, state, ("allowed_transitions", at))
                yield frontmatter.diagnose(mark, "call-in-place", message, hint)
        for tag in attributes.meant(state):
            if tag.name == "call":
                yield frontmatter.diagnose(places.opening(state, tag), "call-in-place", message, hint)


def _secrets(state: State) -> Iterator[Diagnostic]:
    for line, column, length, what in redaction.lines(state.body):
        mark = frontmatter.mark(state.name, state.body, line, column, length)
        shown = msgspec.structs.replace(mark, line=state.line + line - 1, source="", column=column)
        hint = "set it in the environment that Raymond starts in, and read it from there"
        yield frontmatter.diagnose(shown, "secret-in-state", f"this {what.removeprefix('something that ')}", hint)
