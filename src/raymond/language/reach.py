"""Which states a state can lead to: by its tags, by its policy, or because whoever runs there may name them."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from raymond.language import judges, reading, template
from raymond.language.allowed_transitions import FIELDS, Allowed, Entries, bare
from raymond.language.frontmatter import Path
from raymond.language.policy import Policy
from raymond.language.scanner import Tag
from raymond.language.tags import TAGS
from raymond.language.workflow import Reach, State, Workflow
from raymond.patterns import regex

PLACEHOLDERS = ("...", "…")
"""What stands for any name."""
_TRANSITIONS = "|".join(form.name for form in TAGS.values() if form.makes)
_OPENED = regex(rf"<(?:{_TRANSITIONS})[\s>\\]")
_PRINTED = regex(rf"<({_TRANSITIONS})((?:\s[^<>]*)?)>([^<]*)</\1>")
BESIDE = r"RAYMOND_WORKFLOW_DIR|\$\{?0\b|BASH_SOURCE|__file__|(?:from|import)\s+lib\b|PSScriptRoot|%~dp0"
"""How a script finds the files of its workflow."""
_COMPUTED = regex(rf"</[^A-Za-z!]|{BESIDE}")
"""Of a script: the name of a tag is a value, or another file may print tags."""
_STATE_KEYS = "|".join({name for form in TAGS.values() for name, one in form.attributes.items() if one.kind == "state"})
_NAMING = regex(rf"""\b(?:{_STATE_KEYS})=\\?["']?([^"'\\\s]*)""")
NAME = regex(r"\w[\w.-]*")
"""What the name of a state looks like."""


class Leads(Struct):
    """Where one state can lead."""

    named: set[str]
    mentioned: set[str]
    """States whose names stand somewhere else in its text."""
    every: bool = False
    """The next state is computed, or an agent may choose any."""
    told: bool = True
    """Of a prompt: the agent is told a transition, or needs none."""


class Names:
    """The states of a workflow, to be looked up by what tags call them."""

    def __init__(self, states: Iterable[str]) -> None:
        self._states: dict[str, list[str]] = {}
        for state in states:
            for name in {state, bare(state)}:
                self._states.setdefault(name, []).append(state)

    def of(self, names: Iterable[str]) -> set[str]:
        """The states with these names."""
        return {state for name in names for state in self._states.get(name, ())}

    def in_text(self, text: str) -> set[str]:
        """The states whose names are words of `text`."""
        return self.of({word.rstrip(".-") for word in NAME.findall(text)})


def of(workflow: Workflow) -> Reach:
    """Which states its entry can lead to; all of them when there is no entry."""
    if workflow.reach is None:
        workflow.reach = _reach(workflow)
    return workflow.reach


def _reach(workflow: Workflow) -> Reach:
    if workflow.entry not in workflow.states or len(workflow.states) == 1:
        return Reach(frozenset(workflow.states), frozenset(workflow.states))
    return _from(workflow, [workflow.entry])


def also_from(workflow: Workflow, names: Iterable[str]) -> Reach:
    """Which states its entry or any of the states with these names can lead to."""
    reach, others = of(workflow), sorted(Names(workflow.states).of(names) - {workflow.entry})
    if not others:
        return reach
    more = _from(workflow, others)
    return Reach(reach.named | more.named, reach.possible | more.possible)


def _from(workflow: Workflow, states: Sequence[str]) -> Reach:
    paths = _Paths(workflow)
    return Reach(paths.walk(states), paths.walk(states, mentions=True))


def ahead(workflow: Workflow, names: Iterable[str]) -> frozenset[str]:
    """The states with these names, and those that tags and policies name from there on."""
    return _Paths(workflow).walk(sorted(Names(workflow.states).of(names)))


class _Paths:
    """The ways through a workflow; every state on them is read once."""

    def __init__(self, workflow: Workflow) -> None:
        self._workflow = workflow
        self._names = Names(workflow.states)
        self._found: dict[str, Leads] = {}

    def walk(self, states: Iterable[str], *, mentions: bool = False) -> frozenset[str]:
        """Where `states` lead; with `mentions`, also what an agent or a script may name because its text does."""
        ahead = list(states)
        seen = set(ahead)
        while ahead:
            leads = self._leads(ahead.pop())
            if leads.every or not leads.told:
                return frozenset(self._workflow.states)
            new = (leads.named | leads.mentioned if mentions else leads.named) - seen
            seen |= new
            ahead += new
        return frozenset(seen)

    def _leads(self, state: str) -> Leads:
        if state not in self._found:
            leads = of_state(self._workflow.states[state], self._workflow.lib, self._names)
            # The word of a judge leads to what the state that it judges says.
            is_judge = state in judges.of(self._workflow)
            self._found[state] = Leads(leads.named, set()) if is_judge else leads
        return self._found[state]


def of_state(state: State, lib: Mapping[str, str], names: Names) -> Leads:
    """Where `state` can lead, among the states `names`."""
    leads = Leads(set(), set())
    for _, name in in_policy(state.policy):
        _add(leads, names, name)
    leads.every |= "on_review" in state.policy.late
    if state.kind == "script":
        _of_script(leads, state.body, names)
        return leads
    text = template.render(state.body, {}, lib) if "{{include:" in state.body else state.body
    if state.policy.allowed_transitions:
        leads.every |= _chooses(state.policy.allowed_transitions)
        return leads
    tags = [tag for tag in reading.scan(text) if tag.name != "print" and tag.quoted != "comment"]
    for tag in tags:
        for name, _ in of_tag(tag):
            _add(leads, names, name)
    leads.mentioned |= names.in_text(text)
    leads.told = bool(tags)
    return leads


def _of_script(leads: Leads, text: str, names: Names) -> None:
    if _gives_up(text):
        return
    printed = [found.groups() for found in _PRINTED.finditer(text)]
    if not printed or len(printed) != len(_OPENED.findall(text)) or _COMPUTED.search(text):
        leads.every = True
        return
    for tag, attributes, body in printed:
        for name in _NAMING.findall(attributes) if attributes else ():
            _add(leads, names, name)
        if TAGS[tag].body.kind == "state":
            _add(leads, names, body.strip())
    leads.mentioned |= names.in_text(text)


def _gives_up(text: str) -> bool:
    """Whether a script can only fail: it names no tag, and its one `exit` is in the last line and not 0."""
    return (
        "<" not in text
        and text.count("exit") == 1
        and re.search(r"(?:^|;\s*)exit [1-9]\d*\s*\Z", text, re.MULTILINE) is not None
    )


def _add(leads: Leads, names: Names, name: str) -> None:
    """A name that is written out leads to its state; one that is a value may lead to any."""
    if NAME.fullmatch(name):
        leads.named |= names.of([name])
    else:
        leads.every = True


def _chooses(allowed: Sequence[Allowed]) -> bool:
    """Whether the agent may name any state: one is left to it, and none is named for it to choose from."""
    entries = Entries(allowed)
    return not entries.named and any(
        FIELDS[one.tag][field].kind == "state" for one in allowed for field in entries.chosen(one)
    )


def in_policy(policy: Policy) -> Iterator[tuple[Path, str]]:
    """The states that a policy names, each with its place."""
    for index, allowed in enumerate(policy.allowed_transitions):
        for field, known in FIELDS[allowed.tag].items():
            if known.kind == "state" and field in allowed.fields:
                yield ("allowed_transitions", index, field), allowed.fields[field]
    for key in ("then", "on_error", "on_fail", "on_review"):
        if name := getattr(policy, key):
            yield (key,), name
    if policy.evaluator:
        if policy.evaluator.prompt:
            yield ("evaluator", "prompt"), policy.evaluator.prompt
        for path, verdict in policy.evaluator.answers.items():
            for tag in reading.scan(verdict):
                for name, _ in of_tag(tag):
                    yield ("evaluator", *path), name


def of_tag(tag: Tag) -> Iterator[tuple[str, str]]:
    """The states that a tag names, each with the attribute it is in; empty for the body."""
    form = TAGS[tag.name]
    if form.body.kind == "state" and tag.body.strip():
        yield tag.body.strip(), ""
    for name, known in form.attributes.items():
        if known.kind == "state" and tag.attributes.get(name):
            yield tag.attributes[name].strip(), name
