"""Ids of tasks: what a name such as `1`, `1.4`, `1.4.1` or `1.4.1a` stands for."""

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def base(id: str) -> str:
    """The task that a fix task repairs; any other is its own."""
    return id.rstrip(_LETTERS)


def belongs(id: str, name: str) -> bool:
    """Whether a name stands for a task: its own, that of what it repairs, or that of its group or area."""
    return id == name or f"{base(id)}.".startswith(f"{name}.")
