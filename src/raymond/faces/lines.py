"""One line per event, for a terminal that is not redrawn, a pipe or a log."""

import os
import sys
from typing import TextIO

from raymond.drivers.face import Quiet
from raymond.faces import clock, dollars, question, words
from raymond.faces.authored import authored
from raymond.faces.foreign_text import hung, in_margin, spaced, spoken, told, width_of
from raymond.machine import budget
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
from raymond.machine.label import named
from raymond.machine.run import Run
from raymond.text import safe, visible
from raymond.views import tally
from raymond.views.tally import Tally

_UNTOLD = frozenset((StepStarted, StepFinished))
_SHOWN = ("print", "tool", "note", "check")
"""What steps do that has a line; the rest is for those who watch."""
_RED = 10
"""Lines of the end of what a red check printed; `logs --step N` has all of it."""
MARGIN = "    | "
"""Before lines of others, and before what a line of ours has no room for."""


_FAILURES = frozenset((StepFailed, AgentFailed))


def output(text: str, width: int) -> str:
    """What a failed script printed last, below the line that tells the failure."""
    return "".join(f"\n{line}" for line in in_margin(text, MARGIN, width)) if text else ""


def spending(told: Tally, decision: Decision) -> tuple[dict[str, str], str]:
    """What each agent's step that ended here cost, free ones left out, and the run with it; `told` counts it."""
    spent = {}
    for event in decision.events:
        if is_end(event) and event.cost:
            spent[event.agent] = dollars.of_step(event, told.backends.get(event.agent, ""))
        told.add(event)
    return spent, dollars.dollars(told.real, told.scripted, estimated=told.estimated) if spent else ""


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
            self._tally = tally.of_run(run)
        self.folder = run.begun.scope_dir if run.begun else ""
        before = self._tally.cost
        # A total is that of its own decision: the run may be ahead of those that are told.
        for decision in decisions:
            spent, total = spending(self._tally, decision)
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
            with clock.of(self._stream):
                text = "".join([self._lines(*one) for one in self._untold])
            self._untold.clear()
            if text:
                self._put(text)

    def _lines(self, decision: Decision, spent: dict[str, str], total: str) -> str:
        told = [self._line(event, spent, total) for event in decision.events if type(event) not in _UNTOLD]
        if not told:
            return ""
        at = clock.instant(decision.time)
        return "".join([f"{self._fitted(f'[{at}] {line}')}\n" for line in told if line])

    def _fitted(self, line: str) -> str:
        """A line that may quote others, so that none of it is at the beginning of a line of the terminal."""
        width = self._width()
        if not width:
            return line
        first, *rest = line.split("\n")
        return "\n".join((*hung(first, MARGIN, width), *rest))

    def _line(self, event: Event, spent: dict[str, str], total: str) -> str:
        agent = getattr(event, "agent", "")
        if type(event) is AgentStarted and event.label:
            self._labels[agent] = event.label
        label, width = self._labels.get(agent, ""), self._width()
        text = words.line(event, self._states.get(agent, ""), label)
        if text is None:
            return ""
        self._follow(event)
        rest = ""
        if type(event) is AskStarted:
            text, *more = question.beside(f"{named(agent, label)} asks:", event.question, MARGIN, width)
            rest = "".join(f"\n{line}" for line in more)
        else:
            text = " ".join(text.splitlines())
            text = authored(text, self.folder) if type(event) in _FAILURES else text
            text = spaced(text) if width else visible(text)
        if type(event) is StepFailed:
            rest = output(authored(event.output, self.folder), width)
        elif type(event) is GateEnded:
            rest = output("\n".join(event.output.split("\n")[-_RED:]), width)
        cost = f" {spent.pop(agent)} total {total}" if agent in spent else ""
        return f"{text}{cost}{rest}"

    def _follow(self, event: Event) -> None:
        """Note where an agent is."""
        if is_entry(event):
            self._states[event.agent] = event.state
        elif type(event) is AgentEnded:
            self._states.pop(event.agent, None)
            self._labels.pop(event.agent, None)

    def _width(self) -> int:
        """Cells in a line; 0 when lines may be of any length."""
        return width_of(self._stream)

    def on_output(self, agent: str, kind: str, text: str) -> None:
        """What a step prints, and the tools it uses."""
        if kind not in _SHOWN or (self.is_quiet and kind != "print"):
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
        with clock.of(self._stream):
            self.put(f"{self._fitted(visible(f'[{clock.instant(at)}] {text}'))}\n")

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
