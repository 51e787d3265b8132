"""The lines with which agents of a loop end their work; each counts only on a line of its own."""

COMPLETE, FAILED, ALL_DONE = "ITERATION_COMPLETE", "ITERATION_FAILED", "LOOP_COMPLETE"
_ALL = (COMPLETE, FAILED, ALL_DONE)


def has(text: str, marker: str) -> bool:
    """Whether a message has the marker."""
    return any(_bare(line) == marker for line in text.splitlines())


def without(text: str) -> str:
    """A message without any of them."""
    return "\n".join(line for line in text.splitlines() if _bare(line) not in _ALL)


def _bare(line: str) -> str:
    return line.strip().strip("*`_ ")
