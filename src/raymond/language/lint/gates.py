"""The commands of gates, judged before they run, and ways around a gate."""

from collections.abc import Iterator

from raymond.errors import Diagnostic
from raymond.language import frontmatter, gate_rules, judges, reach, reading, template
from raymond.language.allowed_transitions import FIELDS, GATED, Allowed, Entries
from raymond.language.frontmatter import Mark
from raymond.language.policy_keys import GATE_KEYS
from raymond.language.reach import Names
from raymond.language.workflow import State, Workflow, mark_of


def _or_ignore(way: str, finding: str) -> str:
    return f"{way}, or write `<!-- raymond: ignore {finding}: REASON -->` into the file"


_LOOKS = "a check only looks: remove this, or do it yourself before the run"
_DELETES = _or_ignore("let the build tool do it, as in `make clean`", "gate-command-deletes")
_MASKED = "leave that out (Raymond keeps the output), or begin with `set -o pipefail;`"
_UNKNOWN = _or_ignore("put it into a file of the project, as in `./check.sh`", "gate-command-unknown")
_OPEN = _or_ignore("list its `allowed_transitions`, put a gate on {}", "gate-bypass")
_BYPASS = _or_ignore("let it end in a script that fails (`exit 1`), put a gate on the way", "gate-bypass")
_ONWARD = ("return", "next", "timeout_next")
"""Where a tag that passes no gate says how its agent continues."""
_AFTER_FORKS = ("goto", "wait")
"""What can follow forks, and then passes no gate either."""
_NO_GATE = "put `gate: make test` beside it, or remove it"


def unsafe(workflow: Workflow, state: State) -> Iterator[Diagnostic]:
    """Commands that could do harm; also of a state that nothing leads to, because an agent may name it."""
    for at, check in enumerate(state.policy.gate):
        for one in gate_rules.judge(check.run):
            if one.kind == "unsafe":
                mark = mark_of(workflow, state, ("gate", at, "run"))
                yield frontmatter.diagnose(mark, "gate-command-unsafe", f"this check {one.what}", _LOOKS)


def without(state: State) -> Iterator[Diagnostic]:
    """Keys about a gate that there is not; those of workflow.yaml are for states that have one."""
    for key in GATE_KEYS:
        if mark := state.marks.get((key,)):
            yield frontmatter.diagnose(mark, "no-gate", f"`{key}` does nothing: this state has no gate", _NO_GATE)


def check(workflow: Workflow, state: State) -> Iterator[Diagnostic]:
    """What is doubtful about the gate of a state."""
    for at, check in enumerate(state.policy.gate):
        mark = mark_of(workflow, state, ("gate", at, "run"))
        hidden = gate_rules.masks(check.run) if not (check.contains or check.matches or check.exit) else ""
        if hidden:
            message = f"this check is green whatever comes before `{hidden}`"
            yield frontmatter.diagnose(mark, "gate-command-masked", message, _MASKED)
        for one in gate_rules.judge(check.run):
            if one.kind == "deletes":
                yield frontmatter.diagnose(mark, "gate-command-deletes", f"this check {one.what}", _DELETES)
            elif one.kind == "unknown":
                message = f"`{one.what}` is no test runner, build tool or file of the project that Raymond knows"
                yield frontmatter.diagnose(mark, "gate-command-unknown", message, _UNKNOWN)
    yield from _bypasses(workflow, state)
    if state.kind == "prompt" and state.name not in judges.of(workflow):
        yield from _ways_past(workflow, state)


def chooses(workflow: Workflow, state: State) -> Iterator[Diagnostic]:
    """A prompt that may fork a state whose gate is a variable: the agent would choose its own check."""
    late = {name: one.policy.late["gate"] for name, one in workflow.states.items() if "gate" in one.policy.late}
    if not late:
        return
    entries = Entries(state.policy.allowed_transitions)
    for at, entry in enumerate(state.policy.allowed_transitions):
        if entry.tag == "fork":
            targets = _targets(workflow, entries, entry)
            free = [one for one in targets if one in late and late[one] not in entry.fields]
            mark = mark_of(workflow, state, ("allowed_transitions", at))
            yield from (_choosing(mark, one, late[one]) for one in free[:1])
    if not state.policy.allowed_transitions:
        leads = reach.of_state(state, workflow.lib, Names(workflow.states))
        forked = sorted(late.keys() & leads.named)
        yield from (_choosing(mark_of(workflow, state, ()), one, late[one]) for one in forked[:1])


def _choosing(mark: Mark, name: str, variable: str) -> Diagnostic:
    message = f"an agent that forks {name} chooses its check: it is the variable `{variable}`"
    hint = f"let a script fork it, or give `{variable}` in an entry of allowed_transitions"
    return frontmatter.diagnose(mark, "gate-bypass", message, hint)


def _bypasses(workflow: Workflow, state: State) -> Iterator[Diagnostic]:
    """Entries with `gate: false` from which a `result` can be reached without any gate."""
    entries = Entries(state.policy.allowed_transitions)
    for at, entry in enumerate(state.policy.allowed_transitions):
        if entry.gate or entry.tag not in GATED:
            continue
        mark = mark_of(workflow, state, ("allowed_transitions", at))
        if entry.tag == "result":
            message = "`gate: false` lets this state end with a `result` that no gate has checked"
            yield frontmatter.diagnose(mark, "gate-bypass", message, _BYPASS)
        elif end := _unchecked_end(workflow, _targets(workflow, entries, entry)):
            message = f"`gate: false` leads to a `result` of {end} that no gate has checked"
            yield frontmatter.diagnose(mark, "gate-bypass", message, _BYPASS)


def _ways_past(workflow: Workflow, state: State) -> Iterator[Diagnostic]:
    """Tags that pass no gate, with which an agent can continue where a `result` is reached without any."""
    allowed = state.policy.allowed_transitions
    if not allowed:
        anywhere = sorted(workflow.states.keys() - judges.of(workflow).keys())
        if end := _unchecked_end(workflow, anywhere):
            message = f"the agent can end without this gate, for example with a `function` that returns to {end}"
            yield frontmatter.diagnose(mark_of(workflow, state, ("gate",)), "gate-bypass", message, _OPEN.format(end))
        return
    entries = Entries(allowed)
    has_forks = any(one.tag == "fork" for one in allowed)
    for at, entry in enumerate(allowed):
        if entry.tag not in GATED:
            end, why = _unchecked_end(workflow, _onward(workflow, entries, entry)), f"`{entry.tag}` passes no gate"
        elif has_forks and entry.gate and entry.tag in _AFTER_FORKS:
            end, why = (
                _unchecked_end(workflow, _targets(workflow, entries, entry)),
                "after a `fork` this passes no gate",
            )
        else:
            continue
        if end:
            message = f"{why}, and it leads to a `result` of {end} that none has checked"
            yield frontmatter.diagnose(
                mark_of(workflow, state, ("allowed_transitions", at)), "gate-bypass", message, _BYPASS
            )


def _onward(workflow: Workflow, entries: Entries, entry: Allowed) -> list[str]:
    """Where an agent can continue, without anybody's approval, after what an entry begins."""
    fields = _ONWARD if "approve" not in entry.fields else ("timeout_next",)
    given = [value for field, value in entry.fields.items() if field in fields]
    if any(field in fields for field in entries.chosen(entry)):
        given += entries.named or workflow.states
    return sorted(Names(workflow.states).of(given))


def _targets(workflow: Workflow, entries: Entries, entry: Allowed) -> list[str]:
    """Where an entry can lead."""
    names = Names(workflow.states)
    known = FIELDS[entry.tag]
    given = [value for field, value in entry.fields.items() if field in known and known[field].kind == "state"]
    if any(known[field].kind == "state" for field in entries.chosen(entry)):
        given += entries.named or workflow.states
    return sorted(names.of(given))


def _unchecked_end(workflow: Workflow, states: list[str]) -> str:
    """The first state with a `result` that these lead to without a gate; empty when there is none."""
    names, ahead, seen = Names(workflow.states), list(states), set(states)
    while ahead:
        state = workflow.states[ahead.pop(0)]
        if state.policy.has_gate:
            continue
        if _can_end(workflow, state):
            return state.name
        leads = reach.of_state(state, workflow.lib, names)
        new = (set(workflow.states) if leads.every else leads.named) - seen
        seen |= new
        ahead += sorted(new)
    return ""


def _can_end(workflow: Workflow, state: State) -> bool:
    """Whether a state may end with a `result`."""
    if state.policy.allowed_transitions:
        return any(one.tag == "result" for one in state.policy.allowed_transitions)
    if state.kind == "script":
        return "<result" in state.body
    text = template.render(state.body, {}, workflow.lib) if "{{include:" in state.body else state.body
    return any(tag.name == "result" and tag.quoted != "comment" for tag in reading.scan(text))
