"""Records for people, docs/progress.md and docs/failures.md: entries that are added once each."""

from datetime import UTC, datetime

from msgspec import Struct

from raymond.loops.formats import document, foreign_text

PROGRESS = "# Progress"
FAILURES = "## Failure Log"
_LEVEL = 4
"""Headings inside of an entry are below its own."""
_SHOWN = 40
"""Lines of output that an entry has at most."""


class Progress(Struct, frozen=True):
    """A session that ended."""

    when: datetime
    session: int
    sessions: int
    """How many there may be; 0 for no limit."""
    done: str
    """What was done: paragraphs of markdown."""
    command: str
    """Empty when nothing was verified."""
    result: str
    log: str
    """The session log, as a path from the record."""
    loop: str = "Continuous Session"
    """What has sessions, in words."""


class Failure(Struct, frozen=True):
    """An attempt whose verification failed."""

    iteration: int
    when: datetime
    task: str
    command: str
    output: str
    action: str
    state: str


def mark(name: str) -> str:
    """The line by which an entry is found again."""
    name = " ".join(name.split()).replace(">", "&gt;")
    return f"<!-- raymond {name} -->"


def holds(text: str, name: str) -> bool:
    """Whether `text` has the mark on a line of its own, outside of code."""
    wanted = mark(name)
    if wanted not in text:
        return False
    return any(not line.kind and line.text.rstrip() == wanted for line in document.lines(text))


def add(text: str, name: str, entry: str, heading: str) -> str:
    """`text` with the entry and its mark at its end, unless it has them; before it the heading, if `text` lacks it."""
    if holds(text, name):
        return text
    ending = document.newline(text)
    new = f"{mark(name)}\n{entry.strip()}"
    if document.find(text, heading.lstrip("# ")) is None:
        new = f"{heading}\n\n{new}"
    new += document.closing(new)
    return text + document.gap(text) + document.adapted(new, ending)


def united(ours: str, theirs: str) -> str:
    """`ours` with the entries that only `theirs` has; both began as the same text."""
    old = set(_blocks(ours))
    return ours + "".join(one if one.endswith("\n") else f"{one}\n" for one in _blocks(theirs) if one not in old)


def _blocks(text: str) -> list[str]:
    """A record in parts: what is before the first mark, then each mark with its entry."""
    found = [""]
    for line in text.splitlines(keepends=True):
        if line.startswith("<!-- raymond "):
            found.append("")
        found[-1] += line
    return [f"{one.rstrip()}\n\n" for one in found if one.strip()]


def progress(entry: Progress) -> str:
    """The text of an entry of docs/progress.md."""
    count = f"{entry.session}/{entry.sessions}" if entry.sessions else f"{entry.session}"
    done = foreign_text.prose(entry.done, _LEVEL).strip() or "_Nothing was told._"
    result = foreign_text.inline(entry.result)
    checked = f"{foreign_text.code(entry.command)}: {result}" if entry.command else result
    log = foreign_text.inline(entry.log)
    return (
        f"### {entry.when:%Y-%m-%d %H:%M} ({entry.loop} {count})\n\n"
        f"{done}\n\n"
        f"**Verification:** {checked}\n"
        f"**Session log:** [{log.rpartition('/')[2]}]({log})\n"
    )


def failure(entry: Failure) -> str:
    """The text of an entry of docs/failures.md."""
    output = "\n".join(entry.output.rstrip().splitlines()[-_SHOWN:])
    when = entry.when.astimezone(UTC)
    return (
        f"### Iteration {entry.iteration} - {when:%Y-%m-%dT%H:%M:%SZ}\n\n"
        f"**Task:** {foreign_text.inline(entry.task)}\n"
        f"**Verification:** {foreign_text.inline(entry.command)}\n"
        f"**Result:** FAILED\n\n"
        f"**Error Output:**\n{foreign_text.fenced(output)}\n"
        f"**Action Taken:** {foreign_text.inline(entry.action)}\n"
        f"**State:** {foreign_text.inline(entry.state)}\n"
    )
