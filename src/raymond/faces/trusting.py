"""What a person should know of a project before they trust it. Whoever wrote its settings may want to mislead them."""

import re
from collections.abc import Iterable, Sequence

from raymond.text import visible

_LONGEST = 300
_MOST_FILES = 20
_MOST_CHANGES = 3
_CHANGES = {"changed": "changed", "new": "is new", "gone": "is gone"}


def lines(tree: str, files: Iterable[str], actions: Iterable[tuple[str, str, str]]) -> list[str]:
    """The project, the files, and what they would have a program do: (file, kind, text)."""
    told = [("project", tree), *(("file", path) for path in _some(sorted(files)))]
    told += [(kind, f"{text}  ({file})") for file, kind, text in actions]
    return [f"{name + ':':<11}{_shown(text)}" for name, text in told]


def use(names: Sequence[str], is_used: bool, why: str) -> str:
    """Whether settings of a project are used, and why."""
    verb = "is" if len(names) == 1 else "are"
    return f"{' and '.join(names)} here {verb} {'used' if is_used else 'not used'}: {why}"


def lapse(changes: Sequence[tuple[str, str]]) -> str:
    """What has changed since a project was trusted, as (file, what)."""
    more = len(changes) - _MOST_CHANGES
    told = [f"{_shown(path)} {_CHANGES[what]}" for path, what in changes[:_MOST_CHANGES]]
    return ", ".join([*told, f"and {more} more"] if more > 0 else told)


def _some(paths: list[str]) -> list[str]:
    more = len(paths) - _MOST_FILES
    return paths if more <= 0 else [*paths[:_MOST_FILES], f"[and {more} more]"]


def _shown(text: str) -> str:
    """On one line, with nothing hidden by blanks or by length."""
    text = re.sub(r" {3,}", lambda blanks: f" [{len(blanks[0])} spaces] ", visible(text))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} [and {len(text) - _LONGEST} characters more]"
