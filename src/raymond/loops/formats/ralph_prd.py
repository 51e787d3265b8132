"""The prd.json of Ralph: `userStories` with `id`, `title`, `acceptanceCriteria`, `passes` and more."""

import json
from typing import Any

from raymond.loops.formats import state_file
from raymond.loops.formats.foreign_plan import ForeignPlan, ForeignStory, ForeignTask, Unreadable
from raymond.loops.formats.item import Doubt
from raymond.loops.formats.state_file import Broken
from raymond.patterns import regex

STORIES = "userStories"
_LINE = regex(r" in line ([0-9]+)$")
_WHITE = regex(r"[ \t\r\n]*")
_MOST = 9999
"""The highest priority that a story of ours has."""


class _Story:
    """Reads the fields of one story."""

    def __init__(self, fields: Any, at: int, line: int) -> None:
        self.place, self.line = f"{STORIES}[{at}]", line
        if not isinstance(fields, dict):
            raise Unreadable(f"`{self.place}` is not an object", line)
        self.fields: dict[str, Any] = fields

    def wrong(self, name: str, what: str) -> Unreadable:
        return Unreadable(f"`{self.place}.{name}` is not {what}", self.line)

    def text(self, name: str) -> str:
        value = self.fields.get(name)
        if value is not None and not isinstance(value, str):
            raise self.wrong(name, "a text")
        return (value or "").strip()

    def texts(self, *names: str) -> tuple[str, ...]:
        name = next((one for one in names if self.fields.get(one) is not None), names[0])
        value = self.fields.get(name)
        if isinstance(value, str):
            value = [value]
        if value is not None and not isinstance(value, list):
            raise self.wrong(name, "a list of texts")
        for at, one in enumerate(value or ()):
            if not isinstance(one, str | int) or isinstance(one, bool):
                raise self.wrong(f"{name}[{at}]", "a text")
        return tuple(one for value in value or () if (one := str(value).strip()))

    def id(self) -> str:
        value = self.fields.get("id")
        if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
            raise self.wrong("id", "a text or a number")
        return str(value).strip()

    def passes(self) -> bool:
        value = self.fields.get("passes")
        if value is not None and not isinstance(value, bool):
            raise self.wrong("passes", "true or false")
        return value is True

    def priority(self) -> int:
        value = self.fields.get("priority")
        if value is None:
            return 1
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST:
            raise self.wrong("priority", f"a whole number from 0 to {_MOST}")
        return value

    def story(self) -> ForeignStory:
        id, described, notes = self.id(), self.text("description"), self.text("notes")
        title = self.text("title") or described.partition("\n")[0]
        if not title:
            raise Unreadable(f"`{self.place}` has no `title`", self.line)
        criteria, done = self.texts("acceptanceCriteria"), self.passes()
        said = "\n\n".join(one for one in (described, f"Notes: {notes}" if notes else "") if one)
        task = ForeignTask(id, title, said, criteria, done)
        depends = self.texts("dependsOn", "dependencies")
        return ForeignStory(
            id, title, self.line, (task,), id, described, criteria, self.priority(), done, depends_on=depends
        )


def read(text: str) -> ForeignPlan:
    """The stories of a prd.json; `Unreadable` says what is wrong, and where."""
    try:
        fields = state_file.read(text)
    except Broken as error:
        line = _LINE.search(str(error))
        raise Unreadable(str(error).removesuffix(line[0] if line else ""), int(line[1]) if line else 1) from None
    stories = fields.get(STORIES)
    if not isinstance(stories, list):
        raise Unreadable(f"it has no list `{STORIES}`")
    lines = _lines(text, len(stories))
    found: dict[str, ForeignStory] = {}
    doubts = []
    for at, one in enumerate(stories):
        story = _Story(one, at, lines[at]).story()
        if story.key in found:
            doubts.append(Doubt(f"there are two stories {story.key}, and only the first one counts", story.line))
        found.setdefault(story.key, story)
    for story in found.values():
        doubts += [
            Doubt(f"it depends on {one}, which is not there", story.line)
            for one in story.depends_on
            if one not in found
        ]
    return ForeignPlan(_title(fields), tuple(found.values()), doubts=tuple(doubts))


def _title(fields: dict[str, Any]) -> str:
    """What the file is about: the project, its branch."""
    names = [fields.get(name) for name in ("project", "branchName")]
    return ", ".join(" ".join(one.split()) for one in names if isinstance(one, str) and one.strip())


def _lines(text: str, count: int) -> list[int]:
    """The line in which each story begins; that of the list where nobody can tell."""
    at = text.find(f'"{STORIES}"')
    opened = text.find("[", at)
    lines, last, number = [], 0, 1
    at = opened + 1
    decoder = json.JSONDecoder()
    try:
        for _ in range(count):
            at = _blanks(text, at)
            number, last = number + text.count("\n", last, at), at
            lines.append(number)
            at = _blanks(text, decoder.raw_decode(text, at)[1]) + 1
    except ValueError:
        pass
    return [*lines, *[text.count("\n", 0, opened) + 1] * (count - len(lines))]


def _blanks(text: str, at: int) -> int:
    found = _WHITE.match(text, at)
    return found.end() if found else at
