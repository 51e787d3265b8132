"""Where in an author's file a tag, an attribute or a comment is."""

import re

import msgspec

from raymond.language import frontmatter
from raymond.language.frontmatter import Mark
from raymond.language.scanner import Tag, read_opening
from raymond.language.workflow import State


def place(state: State, start: int, stop: int) -> Mark:
    """The part of the state's body from `start` to `stop`."""
    line, column = frontmatter.position(state.body, start)
    mark = frontmatter.mark(state.name, state.body, line, column, stop - start)
    return msgspec.structs.replace(mark, line=state.line + line - 1)


def opening(state: State, tag: Tag) -> Mark:
    """The opening half of a tag."""
    return place(state, tag.start, body_start(state, tag))


def attribute(state: State, tag: Tag, name: str) -> Mark:
    """One attribute of a tag."""
    written = re.compile(rf"\s({re.escape(name)}=(?:\"[^\"]*\"|'[^']*'))")
    found = written.search(state.body, tag.start, body_start(state, tag))
    return place(state, *found.span(1)) if found else opening(state, tag)


def body(state: State, tag: Tag) -> Mark:
    """The text of a tag, without the white space around it."""
    start = body_start(state, tag) + len(tag.body) - len(tag.body.lstrip())
    return place(state, start, start + len(tag.body.strip()))


def body_start(state: State, tag: Tag) -> int:
    """Where the text of a tag begins in the state's body."""
    found = read_opening(state.body, tag.start + 1 + len(tag.name), len(state.body))
    assert found
    return found.stop
