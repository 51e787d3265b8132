"""A question as whoever answers it reads it: whole, with who asks and where."""

from collections.abc import Iterable
from itertools import groupby

from raymond import durations
from raymond.faces import words
from raymond.faces.foreign_text import fitted, hung, in_margin, spaced
from raymond.language import choices
from raymond.machine.agent import named
from raymond.store.asked_files import Found
from raymond.text import visible
from raymond.views.questions import Question

MARGIN = "  | "
"""Before every line that somebody else wrote."""
_MOST_EMPTY = 3
"""Empty lines in a row that are shown as they are."""
SHORT = 160
"""Characters of a text that stands in one line with its label."""


def lines(question: Question, found: Iterable[Found] = (), *, now: float, where: str = "", width: int = 0) -> list[str]:
    """All of it, with its files as they were found; `where` is the directory of its project."""
    shown = head(question, now=now, where=where, width=width)
    return [*shown, *text(question, MARGIN, width), *rest(question, found, width)]


def rest(question: Question, found: Iterable[Found], width: int = 0) -> list[str]:
    """What is shown below the text: the files, whole, and the choices."""
    digests = {one.path: one.sha256 for one in question.files}
    shown = [line for one in found for line in _file(one, digests.get(one.path, ""), width)]
    offered = [f"choices: {spaced(choices.offer(question.choices))}"] if question.choices else []
    return [*shown, *(part for one in offered for part in hung(one, MARGIN, width))]


def _file(found: Found, digest: str, width: int) -> list[str]:
    """A file, whole: bytes that are not text are shown by their numbers."""
    changed = "" if found.sha256 == digest else ", CHANGED SINCE IT ASKED"
    if found.problem:
        return hung(spaced(f"file {found.problem}{changed}"), MARGIN, width)
    text = found.data.decode("utf-8", "backslashreplace")
    end = "" if text.endswith("\n") or not text else ", no line break at the end"
    title = spaced(f"file {found.path} ({size(len(found.data))}{_crlf(text)}{end}{changed}):")
    return [*hung(title, MARGIN, width), *(in_margin(text.removesuffix("\n"), MARGIN, width) if text else [])]


def _crlf(text: str) -> str:
    """That lines end as they do on Windows, which is not seen and changes what a script does."""
    count, every = text.count("\r\n"), text.count("\n")
    return "" if not count else ", CRLF" if count == every else f", CRLF in {count:,} of {every:,} lines"


def folded(text: str) -> str:
    """A question with its long runs of empty lines counted: they would push away what stands above them."""
    lines: list[str] = []
    for is_empty, run in groupby(text.split("\n"), key=lambda line: not line.strip()):
        found = list(run)
        lines += [f"({len(found)} empty lines)"] if is_empty and len(found) > _MOST_EMPTY else found
    return "\n".join(lines)


def size(count: int) -> str:
    """Bytes as people read them."""
    return f"{count:,} byte{'' if count == 1 else 's'}"


def more(question: Question) -> list[str]:
    """The choices and the files by their names, for those who only look."""
    offered = [choices.offer(question.choices)] if question.choices else []
    told = [*(f"choices: {one}" for one in offered), *(f"file: {one}" for one in named_files(question))]
    return [visible(one) for one in told]


def named_files(question: Question) -> list[str]:
    """Its files, by name and size."""
    return [f"{one.path} ({size(one.size)})" for one in question.files]


def head(question: Question, *, now: float, where: str = "", width: int = 0) -> list[str]:
    """Who asks, since when, and where."""
    asks = f"{_who(question)} of {question.workflow_id} asks ({_which(question, now)}):"
    return [part for one in (asks, f"  {_about(question, where)}") for part in hung(visible(one), MARGIN, width)]


def _about(question: Question, where: str = "") -> str:
    """Where it is asked, and who may answer until when."""
    about = [f"in {question.state}" + (f" of the run in {where}" if where else "")]
    if question.deadline:
        about.append(f"can be answered until {words.instant(question.deadline)}")
    if question.approve:
        about.append("needs a person at a terminal")
    return "; ".join(about)


def reminder(question: Question, count: int, again: str, width: int) -> list[str]:
    """Who asks and where, below a question of `count` lines whose head has left the screen; `again` shows it."""
    asks = f"{_who(question)} of {question.workflow_id} asks this, {_about(question)}"
    how = f"its {count:,} lines from the top: {again} 2>&1 | less"
    return [*hung(visible(asks), MARGIN, width), *fitted(visible(how), MARGIN, width)]


def text(question: Question, margin: str, width: int = 0) -> list[str]:
    """What it says, whole."""
    return in_margin(folded(question.text.strip("\n")), margin, width)


def mention(question: Question, *, now: float) -> str:
    """That there is one, in a line."""
    return visible(f"{_who(question)} in {question.state} of {question.workflow_id}, {_which(question, now)}")


def _who(question: Question) -> str:
    return named(question.agent, question.label)


def _which(question: Question, now: float) -> str:
    return f"question {question.number}, {durations.brief(max(0.0, now - question.asked_at))} ago"


def beside(label: str, text: str, margin: str, width: int = 0, *, note: str = "") -> list[str]:
    """All of a text: beside its label when it is one short line, else below it; a `note` follows, or precedes it."""
    text = folded(text.strip("\n"))
    short = " ".join(part for part in (visible(label), *in_margin(text, ""), note) if part)
    if "\n" not in text and len(text) <= SHORT and not (width and len(short) * 2 > width):
        return [short]
    return [f"{visible(label)} {note}".rstrip(), *in_margin(text, margin, width)]
