"""One line per event, on a plain terminal, in a pipe or a file; and the lines of a check that is tried."""

import errno
import os
import shlex
import stat
import sys
from collections import deque
from collections.abc import Iterable
from typing import TextIO

import msgspec

from raymond import durations
from raymond.drivers.face import Quiet
from raymond.errors import UsageError
from raymond.faces import words
from raymond.faces.foreign_text import hung, in_margin, spaced, spoken, told, width_of
from raymond.faces.words import with_author_paths
from raymond.machine import budget
from raymond.machine.agent import named
from raymond.machine.events import (
    AgentEnded,
    AgentFailed,
    AgentStarted,
    AskStarted,
    Decision,
    Event,
    GateEnded,
    StepFailed,
    StepFinished,
    StepStarted,
    is_end,
    is_entry,
)
from raymond.machine.run import Run
from raymond.text import safe, visible
from raymond.verifier.assignment import IN_WORDS, Began, Ended, Found, Noted, Printed, Told
from raymond.views import cost
from raymond.views.cost import Tally
from raymond.views.times import instant

UNTOLD = frozenset((StepStarted, StepFinished))
"""What has no line."""
_SHOWN_OUTPUT = ("print", "tool", "note", "check")
"""What steps do that has a line; the rest is for those who watch."""
_RED_LINES = 10
"""Lines of the end of what a red check printed; `logs --step N` has all of it."""
MARGIN = "    | "
"""Before lines of others, and before what a line of ours has no room for."""

_FAILURES = frozenset((StepFailed, AgentFailed))

_LOGGED_OUTPUT = ("print", "tool", "text", "note")
"""What steps do that is kept: pieces of texts and signs of life are for those who watch."""

_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND

_CHECK_MARGIN = "  | "
_LONGEST_HELD = 8 << 10
"""Characters of a line that are held back until it ends."""


def output(text: str, width: int) -> str:
    """What a failed script printed last, below the line that tells the failure."""
    return "".join(f"\n{line}" for line in in_margin(text, MARGIN, width)) if text else ""


def step_costs(told: Tally, decision: Decision) -> tuple[dict[str, str], str]:
    """What each agent's step that ended here cost, free ones left out, and the run with it; `told` counts it."""
    spent = {}
    for event in decision.events:
        if is_end(event) and event.cost:
            spent[event.agent] = words.step_cost(event, told.backends.get(event.agent, ""))
        told.add(event)
    return spent, words.dollars(told.real, told.scripted, estimated=told.estimated) if spent else ""


def wrapped(line: str, width: int) -> str:
    """A line that may quote others, so that none of it is at the beginning of a line of the terminal."""
    first, *rest = line.split("\n")
    return "\n".join((*hung(first, MARGIN, width), *rest))


class Lines(Quiet):
    """One line per event on stderr; what steps print, as they print it."""

    def __init__(self, stream: TextIO | None = None, *, quiet: bool = False) -> None:
        self._stream = stream or sys.stderr
        self.is_quiet = quiet
        self._states: dict[str, str] = {}
        self._labels: dict[str, str] = {}
        self._tally = Tally()
        self.folder = ""
        """Where the workflow was found."""
        self._untold: list[tuple[Decision, dict[str, str], str]] = []
        """Decisions, what each agent's step cost, and the run with it; writing many at once is cheap."""

    def on_decisions(self, run: Run, decisions: list[Decision]) -> None:
        """Tell what is now in the journal; when nothing is new, note where the agents are and what they cost."""
        if not any(decision.events for decision in decisions):
            self._states = {agent.id: agent.state for agent in run.agents.values()}
            self._labels = {agent.id: agent.label for agent in run.agents.values() if agent.label}
            self._tally = cost.tally_of(run)
        self.folder = run.begun.scope_dir if run.begun else ""
        before = self._tally.cost
        # A total is that of its own decision: the run may be ahead of those that are told.
        for decision in decisions:
            spent, total = step_costs(self._tally, decision)
            if not self.is_quiet:
                self.add(decision, spent, total)
        near = budget.warned(run, before, self._tally.cost)
        if near:
            self.on_note(near)

    def add(self, decision: Decision, spent: dict[str, str], total: str) -> None:
        """Tell one decision, with what each agent's step cost and what the run had cost by then."""
        self._untold.append((decision, spent, total))

    def refresh(self, run: Run | None = None) -> None:
        """Write every line that was not written yet."""
        if self._untold:
            with words.times_for(self._stream):
                text = "".join([self._lines(*one) for one in self._untold])
            self._untold.clear()
            if text:
                self._put(text)

    def _lines(self, decision: Decision, spent: dict[str, str], total: str) -> str:
        told, width = list[str](), self._width()
        for event in decision.events:
            if type(event) not in UNTOLD and (line := self._line(event, spent, total, width)):
                told.append(line)
        if not told:
            return ""
        at = words.instant(decision.time)
        lines = [f"[{at}] {line}" for line in told]
        return "\n".join([wrapped(line, width) for line in lines] if width else lines) + "\n"

    def _line(self, event: Event, spent: dict[str, str], total: str, width: int) -> str:
        agent = getattr(event, "agent", "")
        left, label = self._states.get(agent, ""), self._labels.get(agent, "")
        self.follow(event)
        label = self._labels.get(agent, label)
        text = words.line(event, left, label)
        if text is None:
            return ""
        rest = ""
        if type(event) is AskStarted:
            from raymond.faces import question  # most runs ask nothing

            text, *more = question.beside(f"{named(agent, label)} asks:", event.question, MARGIN, width)
            rest = "".join(f"\n{line}" for line in more)
        else:
            text = " ".join(text.splitlines())
            text = with_author_paths(text, self.folder) if type(event) in _FAILURES else text
            text = spaced(text) if width else visible(text)
        if type(event) is StepFailed:
            rest = output(with_author_paths(event.output, self.folder), width)
        elif type(event) is GateEnded:
            rest = output("\n".join(event.output.split("\n")[-_RED_LINES:]), width)
        cost = f" {spent.pop(agent)} total {total}" if agent in spent else ""
        return f"{text}{cost}{rest}"

    def follow(self, event: Event) -> None:
        """Note where an agent is, and what it is called."""
        if is_entry(event):
            self._states[event.agent] = event.state
            if type(event) is AgentStarted and event.label:
                self._labels[event.agent] = event.label
        elif type(event) is AgentEnded:
            self._states.pop(event.agent, None)
            self._labels.pop(event.agent, None)

    def _width(self) -> int:
        """Cells in a line; 0 when lines may be of any length."""
        return width_of(self._stream)

    def on_output(self, agent: str, kind: str, text: str) -> None:
        """What a step prints, and the tools it uses."""
        if kind not in _SHOWN_OUTPUT or (self.is_quiet and kind != "print"):
            return
        self.refresh()
        mark = {"print": "|", "check": "$"}.get(kind, "*")
        who, width = named(agent, self._labels.get(agent, "")), self._width()
        text = text.removesuffix("\n")
        told = spoken(who, mark, text, width) if width else [f"{who} {mark} {one}" for one in safe(text).split("\n")]
        self._put("".join(f"{line}\n" for line in told))

    def on_note(self, text: str) -> None:
        """Something a person should know, which may quote what others said."""
        self.put("".join(f"{line}\n" for line in told(text, MARGIN, self._width())))

    @property
    def is_terminal(self) -> bool:
        """Whether a person looks at these lines."""
        return self._stream.isatty()

    def tell(self, at: float, text: str) -> None:
        """Something that happened at a time, and may quote what others said."""
        with words.times_for(self._stream):
            self.put(f"{wrapped(visible(f'[{words.instant(at)}] {text}'), self._width())}\n")

    def on_pausing(self, run: Run) -> None:
        """Say what Ctrl-C waits for."""
        for line in words.pausing(run).split("\n"):
            self.on_note(line)

    def put(self, text: str) -> None:
        """Add lines that are ready to be shown."""
        self.refresh()
        self._put(text)

    def _put(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError:
            # Nobody is reading any more: the run continues.
            self._stream = open(os.devnull, "w", encoding="utf-8")


# In a file


def check_log_file(path: str) -> None:
    """Refuse a file that cannot be written. A pipe stays open: whoever reads it leaves when its last writer does."""
    fd = _opened(path, _APPEND)
    if not stat.S_ISFIFO(os.fstat(fd).st_mode):
        os.close(fd)


def check_log_file_dry(path: str) -> None:
    """Refuse the same and make nothing; a pipe may get its reader later."""
    above = os.path.dirname(os.path.abspath(path))
    try:
        os.close(os.open(above, os.O_RDONLY | os.O_DIRECTORY))
        if os.path.isdir(path):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not os.access(path if os.path.exists(path) else above, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise _unwritable(path, error) from None


def _opened(path: str, flags: int) -> int:
    """A file that can be appended to. Follows a link: the path is a person's to choose, and /dev/stdout is one."""
    try:
        if os.path.exists(path) and stat.S_ISBLK(os.stat(path).st_mode):
            raise OSError(errno.EINVAL, "a disk cannot be appended to")
        fd = os.open(path, flags | os.O_NONBLOCK, 0o600)
    except OSError as error:
        raise _unwritable(path, error) from None
    os.set_blocking(fd, True)
    return fd


def _unwritable(path: str, error: OSError) -> UsageError:
    above = os.path.dirname(os.path.abspath(path))
    hint = "name a file that you can write to"
    if not os.path.exists(above):
        hint = f"mkdir -p {shlex.quote(above)}"
    elif error.errno == errno.ENXIO:
        hint = "start what reads it first"
    return UsageError(f"--log-file {path}: {_why_unwritable(path, error)}", hint=hint)


def _why_unwritable(path: str, error: OSError) -> str:
    if error.errno == errno.ENXIO and stat.S_ISFIFO(os.stat(path).st_mode):
        return "nobody reads this pipe"
    return (error.strerror or "").lower()


class LogFile(Quiet):
    """Every line of a run in a file: as the terminal would show it, or an event as JSON."""

    def __init__(self, path: str, form: str) -> None:
        self._file: TextIO = open(path, "a", encoding="utf-8", errors="backslashreplace", opener=_opened)
        self.name = path
        self._json = form == "json"
        self._lines = Lines(self._file)

    def on_decisions(self, run: Run, decisions: list[Decision]) -> None:
        """Note what is now in the journal."""
        if not self._json:
            self._lines.on_decisions(run, decisions)
            return
        for decision in decisions:
            for event in decision.events:
                self._put(msgspec.to_builtins(event) | {"time": instant(decision.time), "seq": decision.seq})

    def on_output(self, agent: str, kind: str, text: str) -> None:
        """Note what a step said."""
        if self._json and kind in _LOGGED_OUTPUT:
            self._put({"type": kind, "agent": agent, "text": text})
        elif not self._json:
            self._lines.on_output(agent, kind, text)

    def on_note(self, text: str) -> None:
        """Note what a person was told."""
        if self._json:
            self._put({"type": "said", "text": text})
        else:
            self._lines.on_note(text)

    def on_pausing(self, run: Run) -> None:
        """Note what Ctrl-C waits for."""
        if self._json:
            self.on_note(words.pausing(run))
        else:
            self._lines.on_pausing(run)

    def refresh(self, run: Run) -> None:
        """Write what was noted."""
        self._lines.refresh(run)
        self._file.flush()

    def close(self) -> None:
        """Write what was noted, and close the file."""
        self._lines.refresh()
        self._file.close()

    def _put(self, fields: dict[str, object]) -> None:
        self._file.write(msgspec.json.encode(fields).decode() + "\n")


# Of a check that is tried


class CheckLines:
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
        if self._rest and (whole or len(self._rest) > _LONGEST_HELD):
            lines, end, self._rest = f"{lines}{end}{self._rest}", "\n", ""
        if end:
            self._put(in_margin(lines, _CHECK_MARGIN, self._width))

    def _say(self, line: str) -> None:
        """A line of ours; what a terminal would wrap of the command in it stays in the margin."""
        self._put(hung(line, _CHECK_MARGIN, self._width))

    def _put(self, lines: list[str]) -> None:
        print("\n".join(lines), file=self._stream, flush=True)


# The last ones


class Tail:
    """Entries on stdout; with `most`, those of the first batch only at its end, and not more than that."""

    def __init__(self, most: int = 0) -> None:
        self._kept: deque[str] | None = deque(maxlen=most) if most else None

    def put(self, entry: str) -> None:
        """Print one entry, or keep it until the batch ends."""
        if self._kept is None:
            sys.stdout.write(entry)
        else:
            self._kept.append(entry)

    def put_all(self, entries: Iterable[str]) -> None:
        """The same with several."""
        if self._kept is None:
            sys.stdout.write("".join(entries))
        else:
            self._kept.extend(entries)

    def put_lines(self, text: str) -> None:
        """Print a text, each line of which is an entry."""
        if self._kept is None:
            sys.stdout.write(text)
        else:
            self._kept.extend(text.splitlines(keepends=True))

    def end(self) -> None:
        """The batch is complete; what comes later is printed as it comes."""
        kept, self._kept = self._kept or (), None
        sys.stdout.writelines(kept)
        sys.stdout.flush()
