"""What a loop writes for people: session logs, docs/progress.md and docs/failures.md, and the lines of its log."""

import re
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime

from msgspec import Struct

from raymond.loops.formats import document, foreign_text, queue
from raymond.loops.formats.document import Document
from raymond.loops.formats.foreign_text import one_line
from raymond.patterns import regex

HEADINGS = (
    "Session Goals",
    "Related Specs",
    "Summary",
    "Implementation Details",
    "Key Decisions",
    "Challenges & Solutions",
    "Code Areas Touched",
    "Spec Updates Needed",
    queue.TITLE,
    "Learnings",
)
PROPOSED = "*proposed*"
_KNOWN = {document.plain(heading): heading for heading in HEADINGS}
_SECTION_LEVEL = 3
"""Headings inside of a section are below its own."""
_NAME = regex(
    r"([0-9]{4}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])_(?:[01][0-9]|2[0-3])[0-5][0-9])_session"
    r"(?:_([2-9]|[1-9][0-9]{1,8}))?\.md"
)

PROGRESS = "# Progress"
FAILURES = "## Failure Log"
_LEVEL = 4
"""Headings inside of an entry are below its own."""
_SHOWN = 40
"""Lines of output that an entry has at most."""

LOOP = "ralph-loop"


# Session logs


class SessionLog(Struct, frozen=True):
    """What a session log says."""

    title: str
    told: Mapping[str, str] = {}
    """The text of each section, by its heading; what is not in `HEADINGS` is not written."""
    next_steps: tuple[str, ...] = ()
    """The raw items of the queue that remains."""


def log_name(when: datetime, taken: Collection[str]) -> str:
    """The name of a new log, which none of `taken` has."""
    stem = f"{when:%Y%m%d_%H%M}_session"
    number = 1
    chosen = f"{stem}.md"
    while chosen in taken:
        number += 1
        chosen = f"{stem}_{number}.md"
    return chosen


def newest_log(names: Iterable[str]) -> str | None:
    """The log that was begun last; names of another form are ignored."""
    found = [match for name in names if (match := _NAME.fullmatch(name)) and _is_date(match[1])]
    return max(found, key=lambda match: (match[1], int(match[2] or 1)))[0] if found else None


def log_began(name: str) -> datetime:
    """The minute at the beginning of a name, by the local clock; `strptime` takes longer to load than to run."""
    year, month, day, hour, minute = name[:4], name[4:6], name[6:8], name[9:11], name[11:13]
    return datetime(int(year), int(month), int(day), int(hour), int(minute))  # noqa: DTZ001 as the name has it


def _is_date(stamp: str) -> bool:
    """Whether there is such a day; the first and the last year have days that no other clock can show."""
    try:
        return 1 < log_began(stamp).year < 9999
    except ValueError:
        return False


def log_text(log: SessionLog) -> str:
    """The text of a log. What agents told cannot bring a second section with one of its headings."""
    parts = [f"# Session: {foreign_text.inline(log.title)}\n"]
    for heading in HEADINGS:
        if heading == queue.TITLE:
            body = queue.listed(log.next_steps)
        else:
            body = foreign_text.prose(log.told.get(heading, ""), _SECTION_LEVEL, HEADINGS).strip("\n")
        parts.append(f"## {heading}\n\n{body.rstrip() or queue.NOTHING}\n")
    return "\n".join(parts)


def joined_log(before: str, log: SessionLog, title: str) -> SessionLog:
    """A log of several items: what the text `before` says, then this one, each part under the title of its item."""
    old_log, parts = Document(before), {}
    for heading in HEADINGS:
        found = old_log.section(heading)
        old = _body(before[found.body : found.end]) if found else ""
        new = foreign_text.prose(log.told.get(heading, ""), _SECTION_LEVEL + 1, HEADINGS).strip()
        own = f"### {foreign_text.inline(log.title)}\n\n{new}" if new and not queue.is_nothing(new) else ""
        parts[heading] = "\n\n".join(filter(None, (old, own)))
    return SessionLog(title, parts, log.next_steps)


def sections_of(reply: str) -> dict[str, str]:
    """The sections that an agent wrote in its last message; what is under no heading of ours is part of the summary."""
    reply = document.adapted(reply, "\n")
    found: dict[str, list[str]] = {}
    heading, level, at = "Summary", 7, 0
    for one in Document(reply).headings:
        known = _KNOWN.get(document.plain(one.title))
        # A heading of another name ends a section only if it is not below it.
        if known is None and one.level > level:
            continue
        found.setdefault(heading, []).append(reply[at : one.start])
        heading, level, at = known or "Summary", one.level if known else 7, one.stop if known else one.start
    found.setdefault(heading, []).append(reply[at:])
    joined = {heading: "\n\n".join(filter(None, (_body(part) for part in parts))) for heading, parts in found.items()}
    return {heading: joined[heading] for heading in HEADINGS if joined.get(heading)}


def _body(part: str) -> str:
    part = part.removeprefix(document.BYTE_ORDER_MARK).strip("\n").rstrip()
    return "" if queue.is_nothing(part) else part


def proposals(text: str) -> tuple[str, ...]:
    """The items that an agent told under Next Steps, as raw items that are marked as proposed."""
    text = foreign_text.prose(text, _SECTION_LEVEL, (queue.TITLE,))
    items = queue.read(f"## {queue.TITLE}\n{text}").items
    return tuple(one.raw if one.proposed else queue.marked(one.raw, PROPOSED) for one in items if not one.ticked)


# Progress and failures


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


def entry_mark(name: str) -> str:
    """The line by which an entry is found again."""
    name = " ".join(name.split()).replace(">", "&gt;")
    return f"<!-- raymond {name} -->"


def has_entry(text: str, name: str) -> bool:
    """Whether `text` has the mark on a line of its own, outside of code."""
    wanted = entry_mark(name)
    if wanted not in text:
        return False
    comments = {start for start, _ in Document(text).comments}
    there = re.finditer(rf"^{re.escape(wanted)}\s*?$", text, re.MULTILINE)
    return any(found.start() in comments for found in there)


def with_entry(text: str, name: str, entry: str, heading: str) -> str:
    """`text` with the entry and its mark at its end, unless it has them; before it the heading, if `text` lacks it."""
    if has_entry(text, name):
        return text
    ending = document.newline(text)
    new = f"{entry_mark(name)}\n{entry.strip()}"
    if Document(text).section(heading.lstrip("# ")) is None:
        new = f"{heading}\n\n{new}"
    new += Document(new).closing()
    return text + Document(text).gap() + document.adapted(new, ending)


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


def progress_entry(entry: Progress) -> str:
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


def failure_entry(entry: Failure) -> str:
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


# Lines of the log


def log_line(when: datetime, text: str, loop: str = LOOP) -> str:
    """One line of the log, without its ending."""
    return f"[{when.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}] {loop}: {one_line(text)}"


def starting_line(iteration: int, iterations: int, *, again: bool = False) -> str:
    """`iterations` is 0 when there is no limit; `again`: another try, which does not count as one more."""
    most = f"/{iterations}" if iterations else ""
    return f"Starting iteration {iteration}{most}{' (again)' if again else ''}"


def selected_line(title: str) -> str:
    """Which item is next."""
    return f'Selected item: "{one_line(title)}"'


def implemented_line() -> str:
    """The agent is done."""
    return "Implementation complete"


def verifying_line(command: str) -> str:
    """The check begins."""
    return f"Running verification: {one_line(command)}"


def verified_line(exit_code: int, *, is_green: bool) -> str:
    """The check ended."""
    return f"Verification {'PASSED' if is_green else 'FAILED'} (exit {exit_code})"


def committing_line() -> str:
    """The changes are kept."""
    return "Committing changes"


def completed_line(iteration: int, seconds: float) -> str:
    """The iteration ended."""
    return f"Iteration {iteration} complete ({duration(seconds)})"


def duration(seconds: float) -> str:
    """`3m 48s`: hours and minutes only where they are needed, seconds always."""
    whole = max(0, int(seconds))
    hours, minutes = whole // 3600, whole // 60 % 60
    if hours:
        return f"{hours}h {minutes}m {whole % 60}s"
    return f"{minutes}m {whole % 60}s" if minutes else f"{whole}s"
