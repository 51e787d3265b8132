"""Late values: keys of a policy whose value is a variable, `gate: "{{check}}"`, and known when an agent is there.

Only what a fork or the start of the run has given counts: the input of a visit may come from an agent.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from raymond.patterns import regex

KEYS = ("gate", "gate_timeout", "seal", "unseal", "may_change", "on_review")
"""The keys that may have one."""
_WHOLE = regex(r"\s*\{\{([A-Za-z_][A-Za-z0-9_]*)\}\}\s*")
_LISTS = ("seal", "unseal", "may_change")
_TABLE = '[{"'


def variable(key: str, value: Any) -> str:
    """The variable that stands for the value of a key; empty when the value is none."""
    found = _WHOLE.fullmatch(value) if key in KEYS and isinstance(value, str) else None
    return found[1] if found else ""


def given(late: Mapping[str, str], values: Mapping[str, str]) -> dict[str, Any]:
    """The keys with the values of their variables, as somebody would write them; an empty one is not set."""
    found: dict[str, Any] = {}
    for key, name in late.items():
        text = values.get(name, "").strip()
        if text and key in _LISTS:
            found[key] = [line.strip() for line in text.splitlines() if line.strip()]
        elif text:
            found[key] = _tables(text) if key == "gate" else text
    return found


def _tables(text: str) -> Any:
    """A gate of several checks, or of one that says what is expected: JSON, as nobody begins a command."""
    if not text.startswith(_TABLE):
        return text
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return text


def missing(late: Mapping[str, str], values: Mapping[str, str]) -> str:
    """The variable without which nobody knows whether there is a gate; empty when it has a value, or there is none."""
    name = late.get("gate", "")
    return name if name and name not in values else ""
