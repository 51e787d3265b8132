"""Session logs: docs/session_logs/YYYYMMDD_HHMM_session.md."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

from msgspec import Struct

from raymond.loops.formats import document, foreign_text, queue
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
_LEVEL = 3
"""Headings inside of a section are below its own."""
_NAME = regex(
    r"([0-9]{4}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])_(?:[01][0-9]|2[0-3])[0-5][0-9])_session"
    r"(?:_([2-9]|[1-9][0-9]{1,8}))?\.md"
)


class SessionLog(Struct, frozen=True):
    """What a session log says."""

    title: str
    told: Mapping[str, str] = {}
    """The text of each section, by its heading; what is not in `HEADINGS` is not written."""
    next_steps: tuple[str, ...] = ()
    """The raw items of the queue that remains."""


def name(when: datetime, taken: Collection[str]) -> str:
    """The name of a new log, which none of `taken` has."""
    stem = f"{when:%Y%m%d_%H%M}_session"
    number = 1
    chosen = f"{stem}.md"
    while chosen in taken:
        number += 1
        chosen = f"{stem}_{number}.md"
    return chosen


def newest(names: Iterable[str]) -> str | None:
    """The log that was begun last; names of another form are ignored."""
    found = [match for name in names if (match := _NAME.fullmatch(name)) and _is_date(match[1])]
    return max(found, key=lambda match: (match[1], int(match[2] or 1)))[0] if found else None


def begun(name: str) -> datetime:
    """The minute at the beginning of a name, by the local clock; `strptime` takes longer to load than to run."""
    year, month, day, hour, minute = name[:4], name[4:6], name[6:8], name[9:11], name[11:13]
    return datetime(int(year), int(month), int(day), int(hour), int(minute))  # noqa: DTZ001 as the name has it


def _is_date(stamp: str) -> bool:
    """Whether there is such a day; the first and the last year have days that no other clock can show."""
    try:
        return 1 < begun(stamp).year < 9999
    except ValueError:
        return False


def compose(log: SessionLog) -> str:
    """The text of a log. What agents told cannot bring a second section with one of its headings."""
    parts = [f"# Session: {foreign_text.inline(log.title)}\n"]
    for heading in HEADINGS:
        if heading == queue.TITLE:
            body = queue.listed(log.next_steps)
        else:
            body = foreign_text.prose(log.told.get(heading, ""), _LEVEL, HEADINGS).strip("\n")
        parts.append(f"## {heading}\n\n{body.rstrip() or queue.NOTHING}\n")
    return "\n".join(parts)


def joined(before: str, log: SessionLog, title: str) -> SessionLog:
    """A log of several items: what the text `before` says, then this one, each part under the title of its item."""
    parts = {}
    for heading in HEADINGS:
        found = document.find(before, heading)
        old = _body(before[found.body : found.end]) if found else ""
        new = foreign_text.prose(log.told.get(heading, ""), _LEVEL + 1, HEADINGS).strip()
        own = f"### {foreign_text.inline(log.title)}\n\n{new}" if new and not queue.is_nothing(new) else ""
        parts[heading] = "\n\n".join(filter(None, (old, own)))
    return SessionLog(title, parts, log.next_steps)


def told(reply: str) -> dict[str, str]:
    """The sections that an agent wrote in its last message; what is under no heading of ours is part of the summary."""
    reply = document.adapted(reply, "\n")
    found: dict[str, list[str]] = {}
    heading, level, at = "Summary", 7, 0
    for one in document.outline(reply)[0]:
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
    text = foreign_text.prose(text, _LEVEL, (queue.TITLE,))
    items = queue.read(f"## {queue.TITLE}\n{text}").items
    return tuple(one.raw if one.proposed else queue.marked(one.raw, PROPOSED) for one in items if not one.ticked)
