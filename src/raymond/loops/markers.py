"""The lines with which agents of a loop end their work; each counts only on a line of its own."""

from raymond.patterns import regex

COMPLETE, FAILED, ALL_DONE = "ITERATION_COMPLETE", "ITERATION_FAILED", "LOOP_COMPLETE"
_ALL = (COMPLETE, FAILED, ALL_DONE)
_PROMISE = regex(r"<promise>.*</promise>")


def has(text: str, marker: str) -> bool:
    """Whether a message has the marker."""
    return any(_bare(line) == marker for line in text.splitlines())


def claims(text: str) -> bool:
    """Whether a message says that the work is done."""
    return has(text, COMPLETE) or has(text, ALL_DONE) or bool(_PROMISE.search(text))


def without(text: str) -> str:
    """A message without any of them."""
    return "\n".join(line for line in text.splitlines() if _bare(line) not in _ALL)


def _bare(line: str) -> str:
    return line.strip().strip("*`_ ")
