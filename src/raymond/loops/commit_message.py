"""The message of a commit that a loop makes."""

from collections.abc import Iterable

from raymond.loops.formats.foreign_text import one_line
from raymond.patterns import regex

_WIDTH = 72
_CONVENTIONAL = regex(r"[a-z]+(?:\([^()]+\))?!?: \S")
_KINDS = {
    "fix": ("fix", "repair", "correct", "resolve", "handle"),
    "docs": ("document", "docs", "readme", "explain"),
    "test": ("test", "cover"),
    "refactor": ("refactor", "rename", "move", "simplify", "extract", "clean"),
    "chore": ("update", "upgrade", "bump", "configure"),
}
_KIND = 13
"""Characters of a kind such as `refactor: `, and of what is around an id."""
_MOST_FILES = 20


def subject(title: str) -> str:
    """A conventional subject for an item."""
    title = one_line(title).strip().rstrip(".")
    if not _CONVENTIONAL.match(title):
        first, _, rest = title.partition(" ")
        word = first.casefold().rstrip(":")
        kind = next((kind for kind, words in _KINDS.items() if word in words), "feat")
        title = rest.lstrip() if first.endswith(":") and word == kind and rest.strip() else title
        title = f"{kind}: {title[:1].lower() + title[1:] if title[1:2].islower() else title}"
    return title if len(title) <= _WIDTH else f"{title[: _WIDTH - 3].rstrip()}..."


def headline(title: str, id: str) -> str:
    """The title of a task or a story with its id at the end, where a subject that is too long keeps it."""
    if not id or not title.startswith(id):
        return title
    bare = one_line(title.removeprefix(id).lstrip(".: ")).rstrip(".")
    room = _WIDTH - len(id) - _KIND
    return f"{bare if len(bare) <= room else bare[: room - 3].rstrip() + '...'} ({id})"


def message(title: str, facts: Iterable[str], wrote: Iterable[str], trailers: Iterable[str]) -> str:
    """The whole message: the subject, what is known about the work, and the lines by which it is found again."""
    files = list(wrote)
    more = f" and {len(files) - _MOST_FILES} more" if len(files) > _MOST_FILES else ""
    named = [f"Written by the check: {', '.join(map(one_line, files[:_MOST_FILES]))}{more}"] if files else []
    body = "\n".join([*map(one_line, facts), *named])
    return "\n\n".join([subject(title), body, "\n".join(trailers)]) + "\n"
