"""Words of commands that a person may paste into a shell: whatever they are, the shell takes each as one word."""

from raymond.text import visible

_PLAIN = frozenset("_@%+=:,./-")


def word(value: str, instead: str) -> str:
    """`value` as one word of a command, in quotes where it needs them.

    What cannot be pasted as it is seen, such as a line break, has `instead` in its place.
    """
    if visible(value) != value:
        return instead
    import shlex

    return shlex.quote(value)


def flag(name: str, value: str, instead: str) -> str:
    """A flag and its value."""
    return f"{name} {word(value, instead)}"


def name(value: str) -> str:
    """A name of others in a sentence of ours: as it is when it is one plain word, else in quotes."""
    if is_plain(value):
        return value
    import shlex

    return shlex.quote(visible(value))


def is_plain(value: str) -> bool:
    """Whether `value` is one word, and nothing in it means something to a shell."""
    return value != "" and all(letter.isalnum() or letter in _PLAIN for letter in value)
