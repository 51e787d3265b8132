"""Evaluator: a second opinion on a transition, and what its verdicts lead to."""

from collections.abc import Iterator, Mapping

from msgspec import Struct

from raymond.language import reading
from raymond.language.refusal import Refusal
from raymond.language.tags import Transition
from raymond.patterns import regex

KEEP = "keep"
"""The verdict that leaves a transition as it is."""
MATCH, NONE = "match", "none"
"""The verdicts of a pattern without a group: it was found in the message, or not."""
_AROUND = regex(r"\A[\W_]+|[\W_]+\Z")
"""Markdown and punctuation around a word."""
_RESULT = regex(r"</?result>")
"""A judge that writes its verdict as a result means the same."""


class Evaluator(Struct, frozen=True, kw_only=True):
    """A second opinion on a transition: a pattern that is searched in the final message, or a judge's prompt."""

    pattern: str = ""
    prompt: str = ""
    model: str = ""
    verdicts: dict[str, str] = {}
    default: str = ""

    def pick(self, said: str) -> str | None:
        """The verdict that `said` is, as the author has written it; None when it is none of them."""
        word = plain(said)
        return next((verdict for verdict in self.verdicts if plain(verdict) == word), None)

    def choice(self, verdict: str | None) -> str:
        """What follows from a verdict: `keep` or a transition as it is written; empty when the default is missing."""
        return self.default if verdict is None else self.verdicts[verdict]

    @property
    def answers(self) -> Mapping[tuple[str, ...], str]:
        """All that it can choose, each with its place."""
        found: dict[tuple[str, ...], str] = {("verdicts", word): choice for word, choice in self.verdicts.items()}
        return found | {("default",): self.default} if self.default else found


def plain(said: str) -> str:
    """A verdict without case, markdown and punctuation: `**Yes.**` is `yes`."""
    return " ".join(_AROUND.sub("", said).split()).casefold()


def first_line(text: str) -> str:
    """The line of a judge's reply that has the verdict."""
    return next((line for line in _RESULT.sub("", text).splitlines() if plain(line)), "").strip()


def transition(choice: str) -> Transition | None:
    """The transition that a choice is written as; None for `keep`, and for what is not exactly one transition."""
    found = reading.scan(choice.strip())
    if len(found) != 1 or (found[0].start, found[0].stop) != (0, len(choice.strip())):
        return None
    made = reading.transition(found[0])
    return None if isinstance(made, Refusal) else made


def transitions(evaluator: Evaluator) -> Iterator[tuple[tuple[str, ...], Transition]]:
    """The transitions that it can choose, each with its place."""
    for place, choice in evaluator.answers.items():
        made = transition(choice)
        if made is not None:
            yield place, made
