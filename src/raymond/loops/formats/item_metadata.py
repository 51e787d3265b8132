"""The lines under the title of an item: metadata, and details for the agent."""

import re
from collections.abc import Callable, Iterable
from typing import Any, get_args

from raymond import durations
from raymond.loops.formats.document import Line
from raymond.loops.formats.item import Metadata, OnFail
from raymond.patterns import regex

NOTHING = Metadata()
_FIELDS = {
    "timeout": "timeout",
    "retry": "retries",
    "on-fail": "on_fail",
    "tasks": "tasks",
    "seal": "seal",
    "may": "may",
}
_LINE = regex(rf"\s+[-*+]\s+(?:\*\*|__)?({'|'.join(_FIELDS)})(?:\*\*|__)?\s*:(.*)", re.IGNORECASE)
_RETRIES = regex(r"[0-9]{1,3}")
_FENCE = regex(r"\s*(`{3,}|~{3,})(.*)")
_WAYS: tuple[str, ...] = get_args(OnFail)


def read(lines: Iterable[tuple[int, Line]]) -> tuple[Metadata, str, list[tuple[int, str]]]:
    """Metadata, details, and doubts with the number of their line."""
    values: dict[str, Any] = {}
    details: list[str] = []
    doubts: list[tuple[int, str]] = []
    fence = ""
    for number, line in lines:
        was_fence = fence
        fence = "" if line.kind else _inner_fence(line.text, fence)
        is_code = line.kind or fence or was_fence
        found = None if is_code or ":" not in line.text else _LINE.match(line.text)
        if not found:
            details.append(line.text)
        elif doubt := _take(values, found[1].lower(), found[2].strip().removeprefix("**").strip()):
            doubts.append((number, doubt))
    return (Metadata(**values) if values else NOTHING), _dedented(details) if details else "", doubts


def _inner_fence(text: str, fence: str) -> str:
    """The fence that is open after a line. One that is indented too far to be one of the whole text still quotes."""
    found = _FENCE.match(text) if "```" in text or "~~~" in text else None
    if not found:
        return fence
    if fence:
        return "" if found[1].startswith(fence) and not found[2].strip() else fence
    return "" if found[1][0] == "`" and "`" in found[2] else found[1]


def _take(values: dict[str, Any], key: str, text: str) -> str:
    """Note what one line sets; the doubt about it, if any."""
    name = _FIELDS[key]
    text = text.strip("`").strip() if name not in _LISTS else text
    value = _READERS[name](text)
    if value is None:
        return f"`{text[:60]}` is not {_EXPECTED[name]}, so the default counts"
    if name in _LISTS:
        values[name] = (*values.get(name, ()), *value)
        return ""
    doubt = f"`{key}` is given twice, and only the first one counts" if name in values else ""
    values.setdefault(name, value)
    return doubt


def _timeout(text: str) -> float | None:
    return durations.parse(text) or None


def _retries(text: str) -> int | None:
    return int(text) if _RETRIES.fullmatch(text) else None


def _on_fail(text: str) -> str | None:
    return text.lower() if text.lower() in _WAYS else None


def _tasks(text: str) -> tuple[str, ...]:
    return tuple(text.replace(",", " ").replace("`", " ").split())


def globs(text: str) -> tuple[str, ...]:
    """Split at commas, but not at those of `*.{js,ts}`."""
    parts = [""]
    depth = 0
    for one in text:
        depth += (one == "{") - (one == "}" and depth > 0)
        if one == "," and not depth:
            parts.append("")
        else:
            parts[-1] += one
    return tuple(bare for glob in parts if (bare := glob.strip().strip("`").strip()))


_LISTS = ("tasks", "seal", "may")
_READERS: dict[str, Callable[[str], Any]] = {
    "timeout": _timeout,
    "retries": _retries,
    "on_fail": _on_fail,
    "tasks": _tasks,
    "seal": globs,
    "may": globs,
}
_EXPECTED = {
    "timeout": "a duration such as 120s",
    "retries": "a number of retries",
    "on_fail": f"one of {', '.join(_WAYS)}",
}


def _dedented(lines: list[str]) -> str:
    """The lines without the indentation that all of them have."""
    margin = min((len(line) - len(line.lstrip(" \t")) for line in lines if line.strip()), default=0)
    return "\n".join(line[margin:] for line in lines).strip("\n")
