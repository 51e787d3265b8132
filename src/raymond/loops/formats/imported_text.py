"""Stories and tasks of other tools as a PRD and a spec have them: nothing of their text is taken for a field."""

from collections.abc import Sequence

from raymond.loops.formats import document, foreign_text, prd, records, task_spec
from raymond.loops.formats.foreign_plan import ForeignStory, ForeignTask
from raymond.patterns import regex
from raymond.text import safe

_PROPOSED = regex(r"(?i)_+(proposed)_+")
_DEEPEST = 5


def mark(name: str, key: str) -> str:
    """The line by which something imported is found again."""
    return records.mark(f"import {name}/{key}")


def title(text: str) -> str:
    """A title that is only a title: a word such as *proposed* would mean something to us."""
    return foreign_text.inline(_PROPOSED.sub(r"\1", text.replace("*", ""))).strip("# ") or "Untitled"


def story(id: str, one: ForeignStory, *, name: str, level: int, tasks: Sequence[str], depends_on: Sequence[str]) -> str:
    """The section of a story, which its tasks verify."""
    lines = [f"{'#' * level} {id}: {title(one.title)}", mark(name, one.key), ""]
    lines += quoted(one.text)
    if one.criteria:
        lines += ["**Acceptance Criteria:**", *(f"- [ ] {criterion(text)}" for text in one.criteria), ""]
    lines += ["**Verification:** tasks", f"**Implemented by:** {', '.join(tasks)}", f"**Priority:** {one.priority}"]
    if depends_on:
        lines.append(f"**Depends on:** {', '.join(depends_on)}")
    return "\n".join([*lines, ""])


def task(id: str, one: ForeignTask, *, name: str, key: str, story: str, command: str) -> str:
    """The section of a task; without a command a person looks at its criteria."""
    status = task_spec.SHOWN["complete" if one.is_done else "planned"]
    lines = [f"## {id}. {title(one.title)}", mark(name, key), ""]
    lines += [f"**Status:** {status}", f"**Implements:** {story}", "**Verification:**"]
    if command:
        lines += [f"- command: {code(command)}", "- expected: 0"]
    else:
        criteria = one.criteria or (one.title,)
        lines += ["- type: manual", "- criteria:", *(f"  - {criterion(text)}" for text in criteria)]
    lines += ["", *quoted(one.text)]
    if command and one.criteria:
        lines += [*(f"> - [{'x' if text in one.ticked else ' '}] {criterion(text)}" for text in one.criteria), ""]
    return "\n".join(lines)


def head(id: str, about: str, source: str) -> str:
    """The beginning of a spec."""
    told = f": {title(about)}" if about else ""
    return f"# {id} Imported{told}\n\nImported from {foreign_text.code(source)}.\n"


def criterion(text: str) -> str:
    """A criterion as an item of a list: in bold, it could be a field, and half a pair of backticks would go on."""
    line = foreign_text.inline(text)
    line = line.replace("`", "'") if line.count("`") % 2 else line
    return f"\\{line}" if line.startswith(("*", "_")) else line


def quoted(text: str) -> list[str]:
    """Paragraphs as a quotation: a heading, a field or a fence in them is none."""
    if not text.strip():
        return []
    lines = foreign_text.unmarked(safe(text.replace("\r\n", "\n").replace("\r", "\n"))).strip().split("\n")
    return [*(f"> {line}".rstrip() for line in lines), ""]


def code(command: str) -> str:
    """A command in backticks, as `unquoted` reads it."""
    run = "`"
    while run in command:
        run += "`"
    blank = " " if len(run) > 1 else ""
    return f"{run}{blank}{command}{blank}{run}"


def one_command(commands: Sequence[str]) -> str:
    """Commands as one that is green when all of them are."""
    if len(commands) < 2:
        return commands[0] if commands else ""
    return " && ".join(f"({one})" if any(mark in one for mark in ";|&#") else one for one in commands)


def added(text: str, stories: Sequence[str]) -> str:
    """A PRD with these sections at the end of its stories; an empty one begins with a title."""
    ending = document.newline(text)
    new = "\n".join(stories)
    if not text.strip("\ufeff \t\r\n"):
        return f"{text.strip()}# Product requirements\n\n## {prd.TITLE}\n\n{new}"
    at = _end(text)
    if at < 0:
        return text + document.gap(text) + document.adapted(f"## {prd.TITLE}\n\n{new}", ending)
    before, after = text[:at], text[at:]
    return before + document.gap(before) + document.adapted(new, ending) + (ending + after if after else "")


def _end(text: str) -> int:
    """Where the stories of a PRD end; -1 if it has no place for them."""
    found = document.find(document.uncommented(text)[0], prd.TITLE)
    there = prd.read(text).stories
    if found and (not there or any(found.body <= one.start < found.end for one in there)):
        return found.end
    return max((one.end for one in there), default=-1)


def level(text: str) -> int:
    """How deep the heading of another story of a PRD is."""
    there = prd.read(text).stories
    if there:
        line = text[there[-1].start :].removeprefix(document.BYTE_ORDER_MARK).lstrip(" ")
        return len(line) - len(line.lstrip("#"))
    found = document.find(document.uncommented(text)[0], prd.TITLE)
    return min(found.level + 1, _DEEPEST) if found else 3
