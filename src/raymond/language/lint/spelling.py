"""What looks like a tag in a prompt and is none: misspelt, unclosed, not quoted, or of another tool."""

import re
from collections.abc import Iterator
from functools import lru_cache

from raymond.errors import Diagnostic
from raymond.language import frontmatter
from raymond.language.frontmatter import Mark
from raymond.language.lint import places
from raymond.language.scanner import Scanner, Tag, read_opening
from raymond.language.tags import TAGS, TagForm
from raymond.language.workflow import State, Workflow, bare, resolve
from raymond.patterns import regex

_LIKE = regex(r"<([A-Za-z][A-Za-z_-]{1,24})((?:\s[^<>]*)?)(/?)>")
_UNQUOTED = r"""\s([\w-]+=)(?!["'])"""
_ASK = '<ask next="NEXT.md">question</ask> asks a person'
_RUN = "a script starts another workflow: raymond run PATH"
FOREIGN = {
    "await": _ASK,
    "call-workflow": _RUN,
    "function-workflow": _RUN,
    "fork-workflow": _RUN,
    "goto-workflow": _RUN,
    "reset-workflow": _RUN,
    "promise": "<result>text</result> ends the run",
}
"""Tags of other tools -> what does the same here."""
_ORDINARY = frozenset(
    "results task tasks mask asks point points paint pints sprint prints insult consult resort reset".split()
)
"""Words near the names of tags that prompts use for tags of their own."""


def check(workflow: Workflow, state: State) -> Iterator[Diagnostic]:
    """Everything in a prompt that looks like a tag, and that nobody would read as one."""
    if "<" not in state.body:
        return
    text = _unread(state.body)
    for found in _LIKE.finditer(text):
        yield from _look(workflow, state, text, found)


def _look(workflow: Workflow, state: State, text: str, found: "re.Match[str]") -> Iterator[Diagnostic]:
    name = found[1]
    if name in TAGS:
        yield from _incomplete(workflow, state, text, found)
    elif name.lower() in FOREIGN:
        if found[2].strip() or _is_closed(text, found):
            message = f"`<{name}>` is not a tag of this language"
            mark = places.place(state, *found.span())
            yield frontmatter.diagnose(mark, "foreign-tag", message, FOREIGN[name.lower()])
    elif hint := meant(workflow, text, found):
        yield frontmatter.diagnose(places.place(state, *found.span()), "misspelt-tag", f"`<{name}>` is not a tag", hint)


def meant(workflow: Workflow, text: str, found: "re.Match[str]") -> str:
    """A hint at the tag that something like one was probably meant to be; empty when it is none."""
    near = _near(found[1])
    if not near:
        return ""
    body = _state(workflow, _inside(text, found)) if TAGS[near].body.kind == "state" else ""
    return f"did you mean {TAGS[near].write(body)}?" if body or _is_meant(near, text, found) else ""


def _is_meant(near: str, text: str, found: "re.Match[str]") -> bool:
    """Whether a tag that holds no state is probably meant to be `near`."""
    if found[1].lower() != near and (TAGS[near].body.kind == "state" or (near == "ask" and "next" not in found[2])):
        return False
    return _is_closed(text, found)


def _is_closed(text: str, found: "re.Match[str]") -> bool:
    return text.find(f"</{found[1]}>", found.end()) >= 0


def _incomplete(workflow: Workflow, state: State, text: str, found: "re.Match[str]") -> Iterator[Diagnostic]:
    """A tag by its name, which is not one as it is written; the name alone only talks about it."""
    name, form, said = found[1], TAGS[found[1]], _said(text, found)
    if read_opening(text, found.start() + 1 + len(name), len(text)) is None:
        if unquoted := re.search(_UNQUOTED, found[2]):
            at = found.start(2) + unquoted.start(1)
            message = f"the value of `{unquoted[1][:-1]}` is not in quotes, so this is not a tag"
            hint = f'{unquoted[1]}"..."'
            yield frontmatter.diagnose(
                places.place(state, at, at + len(unquoted[1])), "unquoted-attribute", message, hint
            )
        elif found[3]:
            yield _unclosed(places.place(state, *found.span()), form, f"`{found[0]}` is not a tag", "")
    elif _is_state(workflow, said) if form.body.kind == "state" else _is_begun(text, found):
        body = said if form.body.kind == "state" else ""
        yield _unclosed(places.place(state, *found.span()), form, f"`<{name}>` is never closed", body)


def _unclosed(mark: Mark, form: TagForm, message: str, body: str) -> Diagnostic:
    return frontmatter.diagnose(mark, "unclosed-tag", message, f"write {form.write(body)}")


def _is_begun(text: str, found: "re.Match[str]") -> bool:
    """Whether a text follows at once, or attributes show that the tag is meant."""
    return bool(found[2].strip()) or text[found.end() : found.end() + 1].isalnum()


def _said(text: str, found: "re.Match[str]") -> str:
    """The word that follows an opening at once."""
    words = re.match(r"[\w.-]+", text[found.end() : found.end() + 260])
    return words[0].rstrip(".") if words else ""


def _inside(text: str, found: "re.Match[str]") -> str:
    """The one word between an opening and the next tag."""
    words = re.match(r"\s*([\w.-]+)\s*<", text[found.end() : found.end() + 260])
    return words[1] if words else ""


def _state(workflow: Workflow, name: str) -> str:
    """`name` if it is a state; else the state that is one letter away, which may be misspelt like its tag."""
    if not name or _is_state(workflow, name):
        return name
    known = dict.fromkeys(bare(one) for one in workflow.states)
    return next((one for one in known if len(one) > 2 and distance(bare(name), one) == 1), "")


def _is_state(workflow: Workflow, name: str) -> bool:
    return bool(name) and isinstance(resolve(workflow, name), str)


def _unread(body: str) -> str:
    """`body` with blanks in place of fences, comments and everything that is a tag; inline code stays."""
    taken: list[Tag] = []
    quoted: list[tuple[int, int, str]] = []
    scanner = Scanner(taken.append, quote=lambda start, stop, kind: quoted.append((start, stop, kind)))
    scanner.feed(body)
    scanner.close()
    spans = [(tag.start, tag.stop) for tag in taken]
    spans += [(start, stop) for start, stop, kind in quoted if kind != "code"]
    pieces, at = [], 0
    for start, stop in sorted(spans):
        if stop > at:
            start = max(start, at)
            pieces += [body[at:start], re.sub(r"[^\n]", " ", body[start:stop])]
            at = stop
    return "".join([*pieces, body[at:]])


@lru_cache(maxsize=1024)
def _near(name: str) -> str:
    """The tag that `name` was probably meant to be."""
    word = name.lower()
    if word in TAGS:
        return word
    if word in _ORDINARY:
        return ""
    short = word.replace("-", "").replace("_", "")
    return next((known for known in TAGS if distance(short, known) <= (1 if len(known) < 6 else 2)), "")


def distance(one: str, other: str) -> int:
    """How many letters have to be added, left out, changed or swapped with the next."""
    rows = [list(range(len(other) + 1))]
    for i, letter in enumerate(one, 1):
        row = [i]
        for j, wanted in enumerate(other, 1):
            cost = min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                cost = min(cost, rows[-2][j - 2] + 1)
            row.append(cost)
        rows.append(row)
    return rows[-1][-1]
