"""What an agent does in its step, as far as its program tells."""

from msgspec import Struct

from raymond.faces.plain_text import plain

_KEPT = 1000
"""Characters of a text that is being written: wider than any terminal."""
QUIET = 10.0
"""Seconds of silence that are not worth a word."""


class Doing(Struct):
    """What was heard of an agent."""

    last: str = ""
    """The last line that it said, or the last tool that it used."""
    words: str = ""
    """The end of the text that it is writing."""
    check: str = ""
    """The command of its gate that runs."""
    heard: float = 0.0
    """When it last showed a sign of life; 0 when that is not known."""
    context: str = ""
    """How much of its context window is used, in a few characters."""

    def hear(self, kind: str, text: str, now: float) -> None:
        """Take what a step shows."""
        self.heard = now
        match kind:
            case "life":
                pass
            case "context":
                self.context = in_use(text)
            case "check":
                self.check = plain(" ".join(text.split()))
            case "words":
                self.words = (self.words + text)[-_KEPT:]
            case _:
                self.words = ""
                lines = [plain(line) for line in text.splitlines()]
                self.last = next((line for line in reversed(lines) if line.strip()), "")

    def begin(self, now: float) -> None:
        """A step begins."""
        self.words, self.check, self.heard = "", "", now

    def end(self) -> None:
        """The visit is over."""
        self.last = self.words = self.check = ""
        self.heard = 0.0

    def silent(self, now: float) -> float:
        """For how many seconds nothing was heard; 0 when that is not worth a word."""
        return now - self.heard if self.heard and now - self.heard >= QUIET else 0.0


def in_use(text: str) -> str:
    """`12000` or `12000/200000` tokens, as people read them."""
    used, _, window = text.partition("/")
    if not used.isdigit() or (window and not window.isdigit()):
        return ""
    if window and int(window):
        return f"{min(100, round(100 * int(used) / int(window)))}% ctx"
    return f"{int(used) / 1000:.0f}k ctx"
