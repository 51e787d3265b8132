"""Ids of tasks: what a name such as `1`, `1.4`, `1.4.1` or `1.4.1a` stands for."""

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def base(id: str) -> str:
    """The task that a fix task repairs; any other is its own."""
    return id.rstrip(_LETTERS)


def names(id: str) -> list[str]:
    """All names that stand for a task: those to which it belongs."""
    parts = base(id).split(".")
    groups = [".".join(parts[:count]) for count in range(1, len(parts) + 1)]
    return groups if id == groups[-1] else [*groups, id]


def belongs(id: str, name: str) -> bool:
    """Whether a name stands for a task: its own, that of what it repairs, or that of its group or area."""
    return id == name or f"{base(id)}.".startswith(f"{name}.")
