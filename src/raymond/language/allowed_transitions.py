"""Allowed: one transition that a policy permits, and what matches it."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from raymond import durations
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


class Allowed(Struct, frozen=True):
    """One transition that a state may make; everything in `fields` must match."""

    tag: str
    fields: dict[str, str]


def bare(name: str) -> str:
    """`name` without a known extension."""
    stem, _, ending = name.rpartition(".")
    return stem if stem and f".{ending}" in EXTENSIONS else name


def make(allowed: Allowed) -> Transition | None:
    """The transition, when `allowed` leaves nothing open."""
    if any(not allowed.fields.get(field) for field in NEEDED[allowed.tag]):
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


def matches(allowed: Allowed, transition: Transition, after: str) -> bool:
    """Whether `allowed` permits `transition`; `after` is where an agent that forks continues."""
    if allowed.tag != _tag(transition):
        return False
    return all(_same(allowed.tag, field, wanted, transition, after) for field, wanted in allowed.fields.items())


def _same(tag: str, field: str, wanted: str, transition: Transition, after: str) -> bool:
    actual, known = _actual(transition, field), FIELDS[tag].get(field)
    if known is None:
        return bool(actual == wanted)
    if known.unless:
        actual = actual or after
    if known.kind == "state":
        return bare(actual or "") == bare(wanted)
    if known.kind == "duration":
        return bool(actual == durations.parse(wanted))
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
