"""Allowed: one transition that a policy permits, and what matches it."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from raymond import durations
from raymond.language import tags
from raymond.language.tags import Transition

EXTENSIONS = (".md", ".sh", ".py", ".ps1", ".bat")
FIELDS = {
    "goto": ("target", "input", "after"),
    "reset": ("target", "input", "after", "cd"),
    "call": ("target", "return", "input"),
    "function": ("target", "return", "input", "model", "effort"),
    "fork": ("target", "next", "input", "after", "cd"),
    "wait": ("target", "input", "timeout", "timeout_next"),
    "ask": ("payload", "next", "timeout", "timeout_next"),
    "result": ("payload",),
}
NEEDED = {
    "goto": ("target",),
    "reset": ("target",),
    "call": ("target", "return"),
    "function": ("target", "return"),
    "fork": ("target", "next"),
    "wait": ("target",),
    "ask": ("payload", "next"),
    "result": ("payload",),
}
STATE_FIELDS = ("target", "return", "next", "timeout_next")
"""Fields of an allowed transition that name states."""
TIMES = ("after", "timeout")
_LONGEST_SHOWN = 60
_KINDS: dict[str, Callable[..., Transition]] = {
    "goto": tags.Goto,
    "reset": tags.Reset,
    "call": tags.Call,
    "function": tags.Function,
    "fork": tags.Fork,
    "wait": tags.Wait,
    "ask": tags.Ask,
    "result": tags.Result,
}


class Allowed(Struct, frozen=True):
    """One transition a state may make; what stands in `fields` must match."""

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
    given: dict[str, Any] = {key: value for key, value in allowed.fields.items() if key in FIELDS[allowed.tag]}
    for key in TIMES:
        if key in given:
            given[key] = durations.parse(given[key])
    for key, name in (("return", "then"), ("payload", "question" if allowed.tag == "ask" else "text")):
        if key in given:
            given[name] = given.pop(key)
    if allowed.tag == "fork":
        given["variables"] = {key: value for key, value in allowed.fields.items() if key not in given}
    return _KINDS[allowed.tag](**given)


def matches(allowed: Allowed, transition: Transition, after: str) -> bool:
    if allowed.tag != _tag(transition):
        return False
    for field, wanted in allowed.fields.items():
        actual = _actual(transition, field)
        if field == "next" and allowed.tag == "fork":
            actual = actual or after
        if field in STATE_FIELDS:
            same = bare(actual or "") == bare(wanted)
        elif field in TIMES and field in FIELDS[allowed.tag]:
            same = actual == durations.parse(wanted)
        elif field == "payload":
            same = (actual or "").strip() == wanted.strip()
        else:
            same = actual == wanted
        if not same:
            return False
    return True


def _tag(transition: Transition) -> str:
    return str(transition.__struct_config__.tag)


def _actual(transition: Transition, field: str) -> Any:
    if field not in FIELDS[_tag(transition)]:
        return transition.variables.get(field) if isinstance(transition, tags.Fork) else None
    if field == "payload":
        return transition.question if isinstance(transition, tags.Ask) else getattr(transition, "text", "")
    return getattr(transition, "then" if field == "return" else field)


def show(transition: Transition) -> str:
    shown: dict[str, str] = {}
    extra = transition.variables if isinstance(transition, tags.Fork) else {}
    for field in (*FIELDS[_tag(transition)], *extra):
        value = _actual(transition, field)
        if value:
            text = durations.show(value) if isinstance(value, float) else " ".join(value.split())
            shown[field] = text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 3] + "..."
    return write(_tag(transition), shown)


def write(tag: str, fields: Mapping[str, str]) -> str:
    body = fields.get("target", fields.get("payload", ""))
    rest = {key: value for key, value in fields.items() if key not in ("target", "payload")}
    attributes = "".join(f' {key}="{_escape(value)}"' for key, value in rest.items())
    return f"<{tag}{attributes}>{body}</{tag}>"


def _escape(value: str) -> str:
    return value.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
