"""A gate that is tried: what its commands print and how they end, line by line."""

from typing import TextIO

from raymond import durations
from raymond.faces.foreign_text import hung, in_margin, width_of
from raymond.text import visible
from raymond.verifier.assignment import IN_WORDS, Began, Ended, Found, Noted, Printed, Told

_MARGIN = "  | "
_HELD = 8 << 10
"""Characters of a line that are held back until it ends."""


class Trial:
    """Tells what happens on a stream."""

    def __init__(self, stream: TextIO, *, brief: bool = False) -> None:
        self._stream = stream
        self._is_brief = brief
        """What the commands print is left out."""
        self._width = width_of(stream)
        self._rest = ""

    def tell(self, told: Told) -> None:
        """Show what a gate tells."""
        match told:
            case Noted():
                self._say(visible(told.text))
            case Began():
                first, *more = [visible(line) for line in told.command.strip("\n").split("\n")]
                again, where = " once more" if told.again else "", IN_WORDS[told.where]
                which = f" ({again}{where}".replace("( ", "(") + ")" if again or where else ""
                for line in (f"$ {first}{which}", *(f"  {line}" for line in more)):
                    self._say(line)
            case Printed() | Ended() if self._is_brief:
                pass
            case Printed():
                self._print(told.text)
            case Ended():
                self._print("", whole=True)
                how = "its time is over" if told.exit_code is None else f"exit code {told.exit_code}"
                self._say(f"  {how} after {durations.brief(told.seconds)}")
            case _:
                pass

    def end(self, state: str, found: Found) -> None:
        """Say what a gate has shown."""
        flaky = " (flaky: it was red the first time)" if found.flaky else ""
        why = f": {visible(found.reason)}" if found.reason else flaky
        self._say(f"{visible(state)}: {found.verdict}{why}")

    def _print(self, text: str, *, whole: bool = False) -> None:
        """Print the lines that are complete: a command may print half of one."""
        lines, end, self._rest = (self._rest + text).rpartition("\n")
        if self._rest and (whole or len(self._rest) > _HELD):
            lines, end, self._rest = f"{lines}{end}{self._rest}", "\n", ""
        if end:
            self._put(in_margin(lines, _MARGIN, self._width))

    def _say(self, line: str) -> None:
        """A line of ours; what a terminal would wrap of the command in it stays in the margin."""
        self._put(hung(line, _MARGIN, self._width))

    def _put(self, lines: list[str]) -> None:
        print("\n".join(lines), file=self._stream, flush=True)
