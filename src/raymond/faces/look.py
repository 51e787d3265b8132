"""How the live view looks: spinner, bars and marks, in Unicode or, where the terminal has no more, in ASCII."""

from collections.abc import Mapping

from msgspec import Struct

from raymond.machine.agent import ASKING, FAILED, PAUSED, READY, SLEEPING, WAITING

PACE = 4
"""Pictures of the spinner in a second."""


class Look(Struct, frozen=True, kw_only=True):
    """The characters of the live view, each of one cell except `cut`."""

    spinner: str
    full: str
    empty: str
    ends: tuple[str, str] = ("", "")
    """What a bar begins and ends with."""
    dot: str
    cut: str
    """What is put where something was left out."""
    marks: dict[str, str]
    """By the status of an agent."""

    def bar(self, part: float, size: int) -> str:
        """A bar of `size` cells that is full by `part`."""
        full = max(0, min(size, int(part * size)))
        return f"{self.ends[0]}{self.full * full}{self.empty * (size - full)}{self.ends[1]}"

    def spin(self, now: float) -> str:
        """The spinner's picture at `now`."""
        return self.spinner[int(now * PACE) % len(self.spinner)]


_MARKS = {ASKING: "?", PAUSED: "=", SLEEPING: "z"}
UNICODE = Look(
    spinner="⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏",
    full="█",
    empty="░",
    dot="·",
    cut="…",
    marks={**_MARKS, FAILED: "✗", READY: "·", WAITING: "…"},
)
ASCII = Look(
    spinner="|/-\\",
    full="#",
    empty="-",
    ends=("[", "]"),
    dot="-",
    cut="...",
    marks={**_MARKS, FAILED: "x", READY: ".", WAITING: "."},
)


def look_of(environment: Mapping[str, str]) -> Look:
    """The look for the terminal that `environment` describes."""
    # Python itself sets LC_CTYPE=C.UTF-8 where no locale is set: that says nothing about the terminal.
    ours = "" if environment.get("LANG", "") in ("", "C", "POSIX") else environment.get("LANG", "")
    kinds = [environment.get("LC_ALL", ""), environment.get("LC_CTYPE", ""), ours]
    if not kinds[0] and not ours and kinds[1] in ("C.UTF-8", "C.utf8", "UTF-8"):
        return ASCII
    locale = next(filter(None, kinds), "").lower().replace("-", "")
    # The console of Linux has few of these characters.
    return UNICODE if "utf8" in locale and environment.get("TERM") != "linux" else ASCII
