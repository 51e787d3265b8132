"""A question as whoever answers it reads it: whole, with who asks and where."""

from raymond import durations
from raymond.faces import clock
from raymond.faces.foreign_text import in_margin
from raymond.text import visible
from raymond.views.questions import Question

MARGIN = "  | "
"""Before every line that somebody else wrote."""
SHORT = 160
"""Characters of a text that stands in one line with its label."""


def lines(question: Question, *, now: float, where: str = "", width: int = 0) -> list[str]:
    """All of it; `where` is the directory of its project."""
    return [*head(question, now=now, where=where), *text(question, MARGIN, width)]


def head(question: Question, *, now: float, where: str = "") -> list[str]:
    """Who asks, since when, and where."""
    since = durations.brief(max(0.0, now - question.asked_at))
    asks = f"{question.agent} of {question.workflow_id} asks (question {question.number}, {since} ago):"
    about = [f"in {question.state}" + (f" of the run in {where}" if where else "")]
    if question.deadline:
        about.append(f"can be answered until {clock.instant(question.deadline)}")
    if question.approve:
        about.append("needs a person at a terminal")
    return [visible(asks), visible(f"  {'; '.join(about)}")]


def text(question: Question, margin: str, width: int = 0) -> list[str]:
    """What it says, whole."""
    return in_margin(question.text.strip("\n"), margin, width)


def mention(question: Question, *, now: float) -> str:
    """That there is one, in a line."""
    since = durations.brief(max(0.0, now - question.asked_at))
    return visible(
        f"{question.agent} in {question.state} of {question.workflow_id}, question {question.number}, {since} ago"
    )


def beside(label: str, text: str, margin: str, width: int = 0, *, note: str = "") -> list[str]:
    """All of a text: beside its label when it is one short line, else below it; a `note` follows, or precedes it."""
    text = text.strip("\n")
    short = " ".join(part for part in (visible(label), *in_margin(text, ""), note) if part)
    if "\n" not in text and len(text) <= SHORT and not (width and len(short) * 2 > width):
        return [short]
    return [f"{visible(label)} {note}".rstrip(), *in_margin(text, margin, width)]
