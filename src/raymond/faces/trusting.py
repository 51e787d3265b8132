"""What a person should know of a project before they trust it. Whoever wrote its settings may want to mislead them."""

from collections.abc import Iterable, Sequence

from raymond.faces.foreign_text import laid_open, some, told_lines

_MOST_FILES = 20
_MOST_ACTIONS = 20
_WORST = ("server", "command", "hook")
_MOST_CHANGES = 3
_CHANGES = {"changed": "changed", "new": "is new", "gone": "is gone"}


def lines(tree: str, files: Iterable[str], actions: Iterable[tuple[str, str, str]]) -> list[str]:
    """The project, the files, and what they would have a program do: (file, kind, text)."""
    told = [("project", tree), *some("file", _MOST_FILES, sorted(files))]
    kinds: dict[str, list[str]] = {}
    for file, kind, text in actions:
        kinds.setdefault(kind, []).append(f"{text}  ({file})")
    # What runs by itself stands next to the question.
    for kind in sorted(kinds, key=lambda kind: _WORST.index(kind) if kind in _WORST else -1):
        told += some(kind, _MOST_ACTIONS, kinds[kind])
    return told_lines(told)


def use(names: Sequence[str], is_used: bool, why: str) -> str:
    """Whether settings of a project are used, and why."""
    verb = "is" if len(names) == 1 else "are"
    return f"{' and '.join(names)} here {verb} {'used' if is_used else 'not used'}: {why}"


def lapse(changes: Sequence[tuple[str, str]]) -> str:
    """What has changed since a project was trusted, as (file, what)."""
    more = len(changes) - _MOST_CHANGES
    told = [f"{laid_open(path)} {_CHANGES[what]}" for path, what in changes[:_MOST_CHANGES]]
    return ", ".join([*told, f"and {more} more"] if more > 0 else told)
