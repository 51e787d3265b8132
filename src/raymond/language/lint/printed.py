"""Tags that a script prints: those that are written out in its text, with nothing computed in them."""

import re
from collections.abc import Iterator

from raymond.errors import Diagnostic
from raymond.language import frontmatter, reach, reading
from raymond.language.lint import approvals, places, spelling
from raymond.language.refusal import Refusal
from raymond.language.scanner import Tag
from raymond.language.tags import TAGS, VARIABLE
from raymond.language.workflow import State, Workflow, resolve
from raymond.patterns import regex

_OPENED = regex(r"<([A-Za-z][A-Za-z_-]{1,24})((?:\s[^<>]*)?)>(?=([^<]*</\1>))")
_WHOLE = regex(r"<([A-Za-z][A-Za-z_-]{1,24})(?:\s[^<>]*)?>[^<]*</\1>")
_COMPUTED = regex(r"[$`{}%!]")
"""Of a tag: part of it is a value."""
_COMMENT = regex(r"(?:^|\s)(?:#|//|::|[Rr][Ee][Mm]\s)")
_DOCSTRING = r"""(?ms)^[ \t]*[rRuU]?(\"{3}|'{3}).*?\1"""


def check(workflow: Workflow, state: State) -> Iterator[Diagnostic]:
    """Misspelt tags, unknown attributes and states that do not exist, where a script would print them as they are."""
    text = re.sub(_DOCSTRING, _blank, state.body) if state.name.endswith(".py") else state.body
    rest = ""
    for found in _OPENED.finditer(text):
        begin = text.rfind("\n", 0, found.start()) + 1
        if _COMPUTED.search(text, found.start(), found.end(3)) or _COMMENT.search(text[begin : found.start()]):
            continue
        mark = places.place(state, found.start(), found.end(3))
        if found[1] in TAGS:
            rest = rest or _WHOLE.sub(" ", text)
            for tag in _tags(f"{found[0]}{found[3]}"):
                for message, hint in (*_attributes(tag), *_targets(workflow, tag, rest)):
                    yield frontmatter.diagnose(mark, "script-tag", message, hint)
                if message := approvals.problem(tag.attributes):
                    yield frontmatter.diagnose(mark, "timeout-approves", message, approvals.HINT)
        elif hint := spelling.meant(workflow, text, found):
            yield frontmatter.diagnose(mark, "misspelt-tag", f"`<{found[1]}>` is not a tag", hint)


def _tags(written: str) -> list[Tag]:
    return reading.scan(written.replace('\\"', '"').replace("\\'", "'"))


def _attributes(tag: Tag) -> Iterator[tuple[str, str]]:
    form = TAGS[tag.name]
    for name in tag.attributes:
        if name in form.attributes or (form.variables and VARIABLE.fullmatch(name)):
            continue
        takes = f"it takes: {', '.join(form.attributes)}" if form.attributes else "it takes none"
        yield f"`<{tag.name}>` has no attribute `{name}`", frontmatter.suggest(name, form.attributes.keys()) or takes


def _targets(workflow: Workflow, tag: Tag, rest: str) -> Iterator[tuple[str, str]]:
    """Names that lead to no state; `rest` is the script without its tags."""
    for name, _ in reach.of_tag(tag):
        refused = resolve(workflow, name) if reach.NAME.fullmatch(name) else None
        # A name that stands elsewhere in the text may be what is replaced by another.
        if isinstance(refused, Refusal) and not re.search(rf"\b{re.escape(name)}\b", rest):
            yield refused.reason, refused.hint


def _blank(found: "re.Match[str]") -> str:
    return re.sub(r"[^\n]", " ", found[0])
