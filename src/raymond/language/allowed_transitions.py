"""Allowed: one transition that a policy permits, and what matches it."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from raymond import durations
from raymond.language import choices
from raymond.language.tags import TAGS, Attribute, Fork, Transition

EXTENSIONS = (".md", ".sh", ".py", ".ps1", ".bat")
FIELDS: dict[str, dict[str, Attribute]] = {
    form.name: {form.body_key: form.body, **form.attributes} for form in TAGS.values() if form.makes
}
"""What an allowed transition may say of each tag; the body is `target` or `payload`."""
NEEDED = {
    form.name: (form.body_key, *(name for name, one in form.attributes.items() if one.required))
    for form in TAGS.values()
    if form.makes
}
"""What must be said before a transition can be made."""
_LONGEST_SHOWN = 60
GATED = ("goto", "reset", "wait", "result")
"""The tags that pass a gate; the others ask a person, or begin something whose end comes back."""


class Allowed(Struct, frozen=True):
    """One transition that a state may make; everything in `fields` must match.

    What it leaves out is free, unless it names a state or decides something: that must be absent.
    """

    tag: str
    fields: dict[str, str]
    gate: bool = True
    """Whether it has to pass the gate of its state, if its tag does."""
    says: str = ""
    """A line of the final message that stands for it."""


def bare(name: str) -> str:
    """`name` without a known extension."""
    stem, _, ending = name.rpartition(".")
    return stem if stem and f".{ending}" in EXTENSIONS else name


def missing(allowed: Allowed) -> list[str]:
    """What has to be said before `allowed` alone can be made: what its tag needs, and what its fields need."""
    return Entries([allowed]).chosen(allowed)


def make(allowed: Allowed) -> Transition | None:
    """The transition, when `allowed` leaves nothing open."""
    if missing(allowed):
        return None
    form = TAGS[allowed.tag]
    made: dict[str, Any] = {}
    variables: dict[str, str] = {}
    for key, value in allowed.fields.items():
        known = FIELDS[allowed.tag].get(key)
        if known:
            made[known.field] = durations.parse(value) if known.kind == "duration" else value
        else:
            variables[key] = value
    if form.variables:
        made["variables"] = variables
    transition: Transition = form.makes(**made)
    return transition


class Entries:
    """The transitions that a state may make, together."""

    def __init__(self, entries: Sequence[Allowed]) -> None:
        self._entries = entries
        self._tags = {allowed.tag for allowed in entries}
        open_, guarded = list[str](), list[str]()
        for allowed in entries:
            (guarded if "approve" in allowed.fields else open_).extend(_states(allowed))
        self.named = list(dict.fromkeys(open_))
        """The states that they name without a person: an agent chooses among these what an entry leaves to it."""
        self._guarded = [name for name in guarded if not _is_any(name, open_)]

    def needed(self, allowed: Allowed) -> list[str]:
        """What must be said to make the transition of one of them."""
        known = FIELDS[allowed.tag]
        always = [name for name in NEEDED[allowed.tag] if not self._tags & set(known[name].unless)]
        return [*always, *(one.needs for name, one in known.items() if one.needs and name in allowed.fields)]

    def chosen(self, allowed: Allowed) -> list[str]:
        """What the agent chooses: needed, and not given."""
        return [name for name in self.needed(allowed) if name not in allowed.fields]

    def refusal(self, transition: Transition, after: str) -> str | None:
        """Why none of them permits `transition`: empty when none is like it, None when one does.

        `after` is where an agent that forks continues.
        """
        why = ""
        for allowed in self._entries:
            if allowed.tag == _tag(transition) and _agrees(allowed, transition, after):
                found = self._excess(allowed, transition, after)
                if not found:
                    return None
                why = why or found
        return why

    def passes_freely(self, transition: Transition) -> bool:
        """Whether one of them permits `transition` and says `gate: false`."""
        return any(
            not allowed.gate
            and allowed.tag == _tag(transition)
            and _agrees(allowed, transition, "")
            and not self._excess(allowed, transition, "")
            for allowed in self._entries
        )

    def continues(self, forks: Sequence[Transition], after: str) -> bool:
        """Whether one of them says of a fork where its agent continues, and permits it."""
        entries = [one for one in self._entries if "next" in one.fields or "next" in self.chosen(one)]
        return any(
            _agrees(allowed, fork, after) and not self._excess(allowed, fork, after)
            for allowed in entries
            if allowed.tag == "fork"
            for fork in forks
        )

    def _excess(self, allowed: Allowed, transition: Transition, after: str) -> str:
        """What `transition` has that `allowed` does not permit, although all that it gives is the same."""
        chosen = self.chosen(allowed)
        more = [
            f"`{name}`"
            for name, known in FIELDS[allowed.tag].items()
            if (known.kind == "state" or known.decides) and name not in (*allowed.fields, *chosen)
            if _actual(transition, name)
        ]
        if more:
            return f"leave out {', '.join(more)}"
        for name in chosen:
            known = FIELDS[allowed.tag][name]
            actual = _actual(transition, name) or (after if known.unless else "")
            if known.kind != "state":
                continue
            if _is_any(actual, self._guarded):
                return f"{actual} needs a person"
            if self.named and not _is_any(actual, self.named):
                what = f"`{name}`" if name in TAGS[allowed.tag].attributes else "the state"
                return f"{what} must be {' or '.join(self.named)}"
        return ""


def _is_any(name: str, others: Sequence[str]) -> bool:
    return any(_is_same(name, other) for other in others)


def _is_same(one: str, other: str) -> bool:
    """Whether two names mean one state: those with an extension mean a file, and there may be another without it."""
    if bare(one) != one and bare(other) != other:
        return one == other
    return bare(one) == bare(other)


def _states(allowed: Allowed) -> list[str]:
    known = FIELDS[allowed.tag]
    return [value for name, value in allowed.fields.items() if name in known and known[name].kind == "state"]


def _agrees(allowed: Allowed, transition: Transition, after: str) -> bool:
    return all(_same(allowed.tag, field, wanted, transition, after) for field, wanted in allowed.fields.items())


def _same(tag: str, field: str, wanted: str, transition: Transition, after: str) -> bool:
    actual, known = _actual(transition, field), FIELDS[tag].get(field)
    if known is None:
        return bool(actual == wanted)
    if known.unless:
        actual = actual or after
    if known.kind == "state":
        return _is_same(actual or "", wanted)
    if known.kind == "duration":
        return bool(actual == durations.parse(wanted))
    if known.kind == "choices":
        return choices.parse(actual or "") == choices.parse(wanted)
    if known is TAGS[tag].body:
        return bool((actual or "").strip() == wanted.strip())
    return bool(actual == wanted)


def _tag(transition: Transition) -> str:
    return str(transition.__struct_config__.tag)


def _actual(transition: Transition, field: str) -> Any:
    known = FIELDS[_tag(transition)].get(field)
    if known:
        return getattr(transition, known.field)
    return transition.variables.get(field) if isinstance(transition, Fork) else None


def show(transition: Transition) -> str:
    """The tag that says `transition`, long texts cut."""
    shown: dict[str, str] = {}
    extra = transition.variables if isinstance(transition, Fork) else {}
    for field in (*FIELDS[_tag(transition)], *extra):
        value = _actual(transition, field)
        if value:
            text = durations.show(value) if isinstance(value, float) else " ".join(value.split())
            shown[field] = text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 3] + "..."
    return write(_tag(transition), shown)


def write(tag: str, fields: Mapping[str, str]) -> str:
    """The tag with these fields."""
    key_of_body = TAGS[tag].body_key
    body = fields.get(key_of_body, "")
    rest = {key: value for key, value in fields.items() if key != key_of_body}
    attributes = "".join(f' {key}="{_escape(value)}"' for key, value in rest.items())
    return f"<{tag}{attributes}>{body}</{tag}>"


def _escape(value: str) -> str:
    return value.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
